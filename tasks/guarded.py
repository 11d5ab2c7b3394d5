"""Nothing of a patient reaches Prefect through an error: what a library says is replaced by its kind and our place."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

from spinney.errors import SpinneyError

P = ParamSpec("P")
R = TypeVar("R")
ROOT = Path(__file__).parents[1]


class StepFailed(SpinneyError):
    """A defect or a broken machine; says which kind of error and where, never what it said: that may quote a cell."""


@contextmanager
def guarded() -> Iterator[None]:
    """Errors with a message for people pass; all others leave only their kind and place. None takes another along."""
    try:
        yield
    except Exception as error:  # the boundary of the house: see the class above
        told = error if isinstance(error, SpinneyError) else StepFailed(_words(error))
        try:
            raise told from None
        except SpinneyError:
            told.__context__ = None  # Prefect stores errors, and a library (tblib) may pickle what they came from, too
            raise


def _words(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__} at {_place(error)}; mend it and start the run again"
    return f"{type(error).__name__} at {_place(error)}"


def guards_patients(work: Callable[P, R]) -> Callable[P, R]:
    """`guarded` around a task. Not around a flow: Prefect reads the types of its parameters where it is written."""

    @functools.wraps(work)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with guarded():
            return work(*args, **kwargs)

    return inside


def _place(error: BaseException) -> str:
    """The deepest line of our own code."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(ROOT)]
    own = [frame for frame in frames if frame.filename != __file__]
    return f"{Path(own[-1].filename).relative_to(ROOT.parent)}:{own[-1].lineno}" if own else "an unknown place"
