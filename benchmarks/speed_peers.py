"""The peers' own environments, made once with pinned versions under build/peers/.

    python -m benchmarks.speed_peers             # make all that are not there yet; more than 2 GB

A part of the benchmarks makes those that it needs by itself; quick runs only use what is there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / "build" / "peers"
SHARED = ("numpy==2.4.6", "pandas==3.1.1", "scikit-learn==1.9.1")


class NotInstalled(Exception):
    """A peer has no environment here; the message says why."""


@dataclass(frozen=True)
class Peer:
    """Another system, and what is installed to run it."""

    name: str
    packages: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return ENVIRONMENTS / self.name

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def ready(self, make: bool = True) -> Path:
        """Its interpreter; made at the first time, unless only what is there may be used."""
        marker, wanted = self.folder / "installed.txt", "\n".join(self.packages)
        if self.python.exists() and marker.exists() and marker.read_text(encoding="utf-8") == wanted:
            return self.python
        if not make:
            how = "`python -m benchmarks.speed_peers` makes it"
            raise NotInstalled(f"{self.name} has no environment yet, and a quick run makes none: {how}")
        shutil.rmtree(self.folder, ignore_errors=True)
        print(f"making an environment for {self.name} ...", file=sys.stderr, flush=True)
        for words in self._commands():
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode:
                last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
                raise NotInstalled(f"{self.name} does not install: {last}")
        marker.write_text(wanted, encoding="utf-8")
        return self.python

    def importable(self, make: bool = True) -> None:
        """For a peer that is a library: this process and those that it spawns can import it, after our own versions."""
        self.ready(make)
        sys.path.append(sysconfig.get_path("purelib", vars={"base": str(self.folder)}))

    def _commands(self) -> list[list[str]]:
        """With uv where it is; it is much faster than pip."""
        uv = next((str(one) for one in (ROOT / ".tools/bin/uv", shutil.which("uv")) if one and Path(one).exists()), "")
        if uv:
            make = [uv, "venv", "--quiet", "--python", sys.executable, str(self.folder)]
            install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(self.python)]
            return [make, [*install, *self.packages]]
        make = [sys.executable, "-m", "venv", str(self.folder)]
        return [make, [str(self.python), "-m", "pip", "install", "--quiet", *self.packages]]


FLOWER = Peer("flower", ("flwr[simulation]==1.41.0", *SHARED))
FLARE = Peer("flare", ("nvflare==2.9.0", "xgboost==3.2.0", "tensorboard==2.21.0", *SHARED))
PYRATE = Peer("pyrate", ("fhir-pyrate==0.2.6", *SHARED[:2]))
POLARS = Peer("polars", ("polars==2.1.0",))
INTELEX = Peer("intelex", ("scikit-learn-intelex==2026.2.0", *SHARED))


def versions(*peers: Peer) -> str:
    """What is installed for those that are here, but for what is the same everywhere."""
    here = [peer for peer in peers if peer.python.exists()]
    own = [package.replace("==", " ") for peer in here for package in peer.packages if package not in SHARED]
    return f"Peers: {', '.join(own)}." if own else ""


def main() -> int:
    """Make them all; 1 if one can't be made."""
    failed = 0
    for peer in (FLOWER, FLARE, PYRATE, POLARS, INTELEX):
        try:
            print(f"{peer.name}: {peer.ready().relative_to(ROOT)}", flush=True)
        except NotInstalled as reason:
            print(reason, file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
