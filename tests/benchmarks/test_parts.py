"""Every part of the benchmarks starts, what it writes can be compared, and one that fails doesn't stop the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as frame
from benchmarks import compare

ROOT = Path(frame.__file__).parent.parent

ABLE = """
from benchmarks.harness import CannotRun, Figure, Measured, command

def measure(asked):
    return Measured([Figure("it", "s", (1.0, 2.0))], "It took 1.5 s.", ["Flower does not install"])

if __name__ == "__main__":
    command("able", "Measures.", measure)
"""
UNABLE = ABLE.replace("return Measured(", "raise CannotRun('it wants --data'); (")
BROKEN = ABLE.replace("return Measured(", "raise ValueError('oh'); (")


@pytest.fixture
def made_parts(tmp_path, monkeypatch):
    """A package of parts that behave as their names say."""
    package = tmp_path / "made_parts"
    package.mkdir()
    for name, source in {"able": ABLE, "broken": BROKEN, "unable": UNABLE}.items():
        (package / f"{name}.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    monkeypatch.setattr(frame, "PACKAGE", "made_parts")
    monkeypatch.setattr(frame, "parts", lambda: ["able", "broken", "unable"])


@pytest.mark.parametrize("part", [*frame.parts(), "compare"])
def test_every_part_imports_and_explains_itself(part):
    words = [sys.executable, "-m", f"benchmarks.{part}", "--help"]
    answer = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert part == "compare" or {"--json", "--quick", "--write", "--data"} <= {*answer.stdout.split()}


def test_a_real_part_writes_what_compare_reads(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert frame.main(["connectors", "--quick", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "## connectors" in said.out
    assert "1 parts measured" in said.err
    file = str(tmp_path / "all.json")
    assert compare.main([file, file]) == 0
    found = compare.compare(*[json.loads(Path(file).read_text())] * 2)
    assert found.alike > 5
    assert (found.missing, found.fresh) == ([], [])


@pytest.mark.usefixtures("made_parts")
def test_a_part_that_cannot_run_is_named_and_stops_nobody(tmp_path, capsys):
    assert frame.main(["unable", "able", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "It took 1.5 s." in said.out
    assert "Not measured: benchmarks.able can't run: it wants --data" in said.err
    assert "Not measured by able: Flower does not install" in said.err
    together = json.loads((tmp_path / "all.json").read_text())
    assert (together["parts"].keys(), together["unable"].keys()) == ({"able"}, {"unable"})


@pytest.mark.usefixtures("made_parts")
def test_a_part_that_crashes_is_named_and_makes_the_run_fail(tmp_path, capsys):
    (tmp_path / "broken.json").write_text("{}")  # of an earlier run
    assert frame.main(["--out", str(tmp_path)]) == 1
    assert "broken crashed with 1: ValueError: oh" in capsys.readouterr().err
    together = json.loads((tmp_path / "all.json").read_text())
    assert (together["parts"].keys(), together["crashed"].keys()) == ({"able"}, {"broken"})
    assert not (tmp_path / "broken.json").exists()


@pytest.mark.usefixtures("made_parts")
def test_parts_that_nobody_knows_are_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        frame.main(["velocity", "--out", str(tmp_path)])
    assert "velocity is no part; there are able, broken, unable" in capsys.readouterr().err
