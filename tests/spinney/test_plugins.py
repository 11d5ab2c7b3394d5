"""What is found by itself: by its file here, by an entry point in another package, under the name that it has."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from spinney import algorithms, plugins
from spinney.plugins import ALGORITHMS, Offers
from spinney.study.study import AnyAlgorithm

COPY = """
from typing import Literal
from spinney.algorithms.fedrf import ALGORITHM as fedrf
from spinney.base import Settings
from spinney.federation.seam import Algorithm

class Copy(Settings):
    name: Literal["{name}"] = "{name}"

MINE = Algorithm(Copy, fedrf.site_part, fedrf.coordinate)
"""


def test_every_file_is_an_algorithm():
    files = {path.stem for path in Path(algorithms.__file__).parent.glob("*.py")} - {"__init__"}
    assert {found.settings.__module__.rpartition(".")[2] for found in ALGORITHMS.values()} == files


def test_an_algorithm_is_called_as_its_settings_say():
    for name, found in ALGORITHMS.items():
        assert found.settings().name == name


def test_every_step_that_a_coordinator_may_ask_is_a_method_of_the_site():
    for found in ALGORITHMS.values():
        part = found.site_part
        assert part.last_step in part.steps
        assert all(callable(getattr(part, step)) for step in part.steps | part.first_steps)


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_settings_are_read_by_the_name_of_the_algorithm(name: str):
    assert type(TypeAdapter(AnyAlgorithm).validate_python({"name": name})) is ALGORITHMS[name].settings


def test_an_algorithm_that_nobody_offers_is_refused():
    with pytest.raises(ValidationError):
        TypeAdapter(AnyAlgorithm).validate_python({"name": "oracle"})


def test_names_are_known_before_anything_is_imported():
    code = (
        "import sys\nfrom spinney.plugins import ALGORITHMS, EXCHANGES, SOURCES\n"
        "print(ALGORITHMS.names, EXCHANGES.names, SOURCES.names)\n"
        "print(sorted(name for name in sys.modules if name.startswith(('spinney.algo', 'spinney.conn', 'numpy'))))"
    )
    names, imported = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "bofrf" in names
    assert "sftp" in names
    assert "fhir-bulk" in names
    assert imported == "[]"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], Offers]:
    """Installs a package with one entry point and one module, and looks for algorithms anew."""

    def install(name: str, point: str, module: str) -> Offers:
        (tmp_path / f"{name}_1.dist-info").mkdir()
        (tmp_path / f"{name}_1.dist-info/METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (tmp_path / f"{name}_1.dist-info/entry_points.txt").write_text(f"[spinney.algorithms]\n{point}\n")
        (tmp_path / f"{name}_code.py").write_text(module)
        return offers()

    def offers() -> Offers:
        plugins._entry_points.cache_clear()
        old = ALGORITHMS
        return Offers(old.what, old.group, old._package, old._attribute, old._called)

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    plugins._entry_points.cache_clear()


def test_what_another_package_offers_is_found(packages):
    found = packages("wood", "copy = wood_code:MINE", COPY.format(name="copy"))
    assert found["copy"].settings().name == "copy"
    assert found.foreign == ("copy",)
    assert found.broken == {}


@pytest.mark.parametrize(
    ("point", "module", "says"),
    [
        ("copy = wood_code:MINE", "import nothing_of_this_name", "can't be loaded (ModuleNotFoundError"),
        ("copy = wood_code:MINE", "MINE = 7", "is nothing of the kind"),
        ("other = wood_code:MINE", COPY.format(name="copy"), "calls itself copy; call both the same"),
        ("bofrf = wood_code:MINE", COPY.format(name="bofrf"), "offers the algorithm bofrf, which is there"),
    ],
    ids=["cannot be imported", "something else", "another name", "one of ours"],
)
def test_what_can_t_be_used_is_named_and_left_out(packages, point: str, module: str, says: str):
    sys.modules.pop("wood_code", None)
    found = packages("wood", point, module)
    (reason,) = found.broken.values()
    assert says in reason
    assert "wood" in reason
    assert set(found) == set(ALGORITHMS)
    assert found["bofrf"] is not None
