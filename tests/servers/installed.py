"""Spinney as a hospital has it: the wheel in an environment of its own, beside the libraries that are here anyway."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

from tests.places import ROOT

UV = ROOT / ".tools" / "bin" / "uv"


@dataclass(frozen=True)
class Installed:
    """The environment."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def spinney(self) -> Path:
        return self.folder / "bin" / "spinney"

    def add(self, package: Path) -> None:
        """Install a wheel or a folder; what it needs is there."""
        uv("pip", "install", "--no-deps", "--python", self.python, package)


def installed(folder: Path) -> Installed:
    """The wheel of this tree, alone but for the libraries: their folder is on the path, our own checkout is not."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "environment"], check=True)
    made = Installed(folder / "environment")
    site = made.folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")  # and not what *.pth files in it add
    made.add(wheel(folder / "direct"))
    return made


def wheel(folder: Path) -> Path:
    """Built at once from this tree."""
    uv("build", "--wheel", "--out-dir", folder, ROOT)
    return next(folder.glob("*.whl"))


def wheel_from_sdist(folder: Path) -> Path:
    """Built from the source distribution, as a package index does."""
    uv("build", "--out-dir", folder, ROOT)
    return next(folder.glob("*.whl"))


def names_in(wheel: Path) -> set[str]:
    """The files in a wheel."""
    with ZipFile(wheel) as archive:
        return {one for one in archive.namelist() if not one.endswith("/")}


def uv(*words: object) -> None:
    done = subprocess.run([UV, "--quiet", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
