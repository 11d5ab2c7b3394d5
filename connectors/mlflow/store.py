"""MLflow itself, kept at arm's length: imported late, without telemetry, and quiet.

A version is made in an order that a kill at any moment cannot spoil: first a run with all files, then the version with
all its tags in one transaction, then aliases. What a killed writer left is a run without a version; it is deleted when
the same model is registered again.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from spinney.connectors.mlflow.addresses import moved_from, readdress
from spinney.connectors.mlflow.lineage import PREFIX
from spinney.errors import SpinneyError
from spinney.storage.files import DiskFull, installation_folder, sync_folder, sync_tree, write_whole

if TYPE_CHECKING:
    from mlflow import MlflowClient

MODEL = "model"
HEALS = frozenset({"TEMPORARILY_UNAVAILABLE", "INTERNAL_ERROR", "REQUEST_LIMIT_EXCEEDED"})
KEY = f"{PREFIX}key"
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "1",
    "GIT_PYTHON_REFRESH": "quiet",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_UV_AUTO_DETECT": "false",  # or it copies the project files of the folder that it happens to run in
    "MLFLOW_LOG_UV_FILES": "false",
}


class RegistryFailed(SpinneyError):
    """The registry did not do what it was asked; the message says what to do."""

    def __init__(self, words: str, *, transient: bool = False) -> None:
        self.transient = transient  # the same may succeed in a while: a server that is away, a database in use
        super().__init__(words)


def quiet_mlflow() -> Any:
    """The library, which takes a second to import."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    logging.getLogger("mlflow").setLevel(logging.ERROR)  # its warnings about pip and its log of migrations
    logging.getLogger("alembic").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"mlflow\.")  # it warns about type hints of its own
        import mlflow
        import mlflow.pyfunc
        from mlflow.utils import requirements_utils

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    # Or it reads the list of files of every installed package, to warn that what runs now might not be installed.
    if getattr(requirements_utils, "_MODULES_TO_PACKAGES", {}) is None:
        requirements_utils._MODULES_TO_PACKAGES = {}  # type: ignore[assignment]
    return mlflow


_MIGRATING = threading.Lock()  # MLflow's migrations are not for two threads at once


def ensure_database(path: Path) -> None:
    """MLflow's SQLite database, whole or not at all: a kill leaves none that is half migrated."""
    if not path.exists():
        write_whole(path, empty_database())


def empty_database() -> bytes:
    """A migrated database with nothing in it."""
    with _MIGRATING:
        return _empty_database()


@cache
def _empty_database() -> bytes:
    """Kept with the installation that it fits: seventy migrations take longer than most rounds' steps."""
    shared = installation_folder()
    if shared is None:
        return _migrated()
    template = shared / f"mlflow-{installed('mlflow')}.db"
    with suppress(OSError):  # not there yet, or another user's
        return template.read_bytes()
    made = _migrated()
    with suppress(OSError, DiskFull):
        write_whole(template, made)
    return made


def _migrated() -> bytes:
    """Hundreds of small commits, made in memory where that can be had: on a disk they take seconds."""
    quiet_mlflow()
    from mlflow import MlflowClient

    memory = "/dev/shm"  # noqa: S108 (nothing secret, and a folder of our own in it)
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        MlflowClient(f"sqlite:///{folder}/mlflow.db").search_experiments()
        return Path(folder, "mlflow.db").read_bytes()


@dataclass(frozen=True)
class Version:
    """A model in the registry."""

    name: str
    number: int
    aliases: tuple[str, ...]
    tags: Mapping[str, str]
    created: int  # milliseconds since 1970
    run: str

    def said(self, what: str) -> str:
        """What a tag of ours says."""
        return self.tags.get(f"{PREFIX}{what}", "")

    @property
    def round(self) -> int:
        return int(self.said("round") or 0)

    @property
    def model_digest(self) -> str:
        return self.said("model_digest")

    def __str__(self) -> str:
        return f"{self.name}/{self.number}"


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def explained(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """What MLflow complains about, in one line of ours: a server that is away, a database of another version."""

    @wraps(work)
    def done(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        quiet_mlflow()
        from mlflow.exceptions import MlflowException

        try:
            return work(*arguments, **named)
        except MlflowException as error:
            first, heals = str(error).strip().splitlines()[0][:300], error.error_code in HEALS
            words = f"MLflow refuses: {first}; see `registry` in site.yaml, then try again"
            raise RegistryFailed(words, transient=heals) from None

    return done


class ModelStore:
    """Versions, files and aliases in one MLflow."""

    def __init__(self, tracking: str, artifacts: Path | None) -> None:
        self.tracking, self._artifacts = tracking, artifacts

    @cached_property
    def client(self) -> MlflowClient:
        quiet_mlflow()
        from mlflow import MlflowClient

        if self._artifacts is not None:  # then it is a database of ours, and its home may have been moved
            _, _, database = self.tracking.partition("sqlite:///")
            self._settle_in(Path(database), self._artifacts)
        return MlflowClient(tracking_uri=self.tracking, registry_uri=self.tracking)

    @explained
    def versions(self, name: str) -> list[Version]:
        """All versions, the newest first; none where nothing is registered."""
        found: list[Any] = []
        token = None
        while token != "":
            page = self.client.search_model_versions(f"name='{name}'", max_results=200, page_token=token)
            found += page
            token = page.token or ""
        alias_of: dict[int, list[str]] = {}
        for alias, number in (self.client.get_registered_model(name).aliases if found else {}).items():
            alias_of.setdefault(int(number), []).append(alias)
        made = [self._version(one, alias_of.get(int(one.version), ())) for one in found]
        return sorted(made, key=lambda version: -version.number)

    @explained
    def create(
        self,
        name: str,
        files: Path,
        tags: Mapping[str, str],
        figures: Mapping[str, float],
        finished: Collection[str],
        called: str = "",
        said: str = "",
    ) -> None:
        """Keep a folder of files, one of them `model`, as a new version. `finished`: runs that have one.

        `called` is the run's name, and `said` what people read of the version first.
        """
        self._forget_unfinished(name, tags[KEY], finished)
        run = self.client.create_run(self._experiment(name), tags=dict(tags), run_name=called or None)
        self.client.log_artifacts(run.info.run_id, str(files))
        self._log(run.info.run_id, figures)
        if self._artifacts is not None:  # a version must not outlive its files in a power cut
            sync_tree(self._artifacts / run.info.run_id)
            sync_folder(self._artifacts)
        self.client.set_terminated(run.info.run_id)
        self._ensure_registered(name)
        source = f"{run.info.artifact_uri}/{MODEL}"
        self.client.create_model_version(name, source, run.info.run_id, tags=dict(tags), description=said or None)

    @contextmanager
    def files(self, version: Version, path: str) -> Iterator[Path]:
        """A version's files on this machine: its own where they are here, else a copy for as long as it is needed."""
        from mlflow.exceptions import MlflowException

        with tempfile.TemporaryDirectory() as copy:
            try:
                there = self.client.download_artifacts(version.run, path, None if self._artifacts else copy)
            except (OSError, MlflowException):
                words = f"{path} of {version} is not in {self.tracking} any more; restore its backup, or roll back"
                raise RegistryFailed(words, transient=self._artifacts is None) from None
            yield Path(there)

    @explained
    def point(self, alias: str, name: str, number: int) -> None:
        """Let an alias mean a version."""
        self.client.set_registered_model_alias(name, alias, str(number))

    @explained
    def unpoint(self, alias: str, name: str) -> None:
        """Let an alias mean nothing."""
        self.client.delete_registered_model_alias(name, alias)

    @explained
    def tag(self, version: Version, what: str, value: str) -> None:
        """Note something about a version."""
        self.client.set_model_version_tag(version.name, str(version.number), f"{PREFIX}{what}", value)

    @explained
    def delete(self, version: Version) -> None:
        """A version and its files."""
        self.client.delete_model_version(version.name, str(version.number))
        self._delete_run(version.run)

    @staticmethod
    def _settle_in(database: Path, artifacts: Path) -> None:
        try:
            if moved_from(database, artifacts):
                readdress(database, artifacts)
        except sqlite3.OperationalError as error:
            raise RegistryFailed(f"{database} is in use ({error}); try again", transient=True) from None
        except sqlite3.Error as error:
            raise RegistryFailed(f"{database} can't be used ({error}); restore it from the house's backup") from None

    def _log(self, run_id: str, figures: Mapping[str, float]) -> None:
        """All in one transaction."""
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        self.client.log_batch(run_id, [Metric(name, value, now, step=0) for name, value in figures.items()])

    def _delete_run(self, run_id: str) -> None:
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        uri = self.client.get_run(run_id).info.artifact_uri
        get_artifact_repository(uri, tracking_uri=self.tracking).delete_artifacts()
        if self._artifacts is not None:
            shutil.rmtree(self._artifacts / run_id, ignore_errors=True)
        self.client.delete_run(run_id)

    def _forget_unfinished(self, name: str, key: str, finished: Collection[str]) -> None:
        for run in self.client.search_runs([self._experiment(name)], f"tags.`{KEY}` = '{key}'"):
            if run.info.run_id not in finished:
                self._delete_run(run.info.run_id)

    def _experiment(self, name: str) -> str:
        found = self.client.get_experiment_by_name(name)
        if found is not None:
            return str(found.experiment_id)
        return str(self.client.create_experiment(name, self._artifacts.as_uri() if self._artifacts else None))

    def _ensure_registered(self, name: str) -> None:
        if not self.client.search_registered_models(f"name='{name}'"):
            self.client.create_registered_model(name)

    @staticmethod
    def _version(found: Any, aliases: Sequence[str]) -> Version:
        return Version(
            found.name, int(found.version), tuple(sorted(aliases)), found.tags, found.creation_timestamp, found.run_id
        )
