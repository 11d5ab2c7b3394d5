"""What MLflow calls to load a version (`loader_module`), on any machine with Spinney installed.

`mlflow.pyfunc.load_model("models:/NAME@champion").predict(frame)` gives a probability and a yes or no per row. Columns
are found by name; a column that the frame doesn't have is missing, or trees that ask it abstain, as the study says.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney.choice.saved import ModelDescription, ModelRefused, read_words, restore, save

if TYPE_CHECKING:
    import pandas as pd

    from spinney.choice.model import FederatedForest

WORDS, TREES = "model.json", "forest.spny"


class Scorer:
    """A version as `mlflow.pyfunc` wants it."""

    def __init__(self, model: FederatedForest) -> None:
        self.model = model

    def predict(self, frame: Any, params: dict[str, Any] | None = None) -> pd.DataFrame:  # noqa: ARG002
        """Probability of the outcome, and whether it passes the site's decision threshold."""
        import pandas as pd

        yes = self.model.predict_proba(frame)[:, 1]
        index = getattr(frame, "index", None)
        return pd.DataFrame({"probability": yes, "decision": (yes >= self.model.threshold_).astype(int)}, index=index)


def _load_pyfunc(path: str) -> Scorer:
    return Scorer(read_model(Path(path)))


def read_model(folder: Path) -> FederatedForest:
    """The model in a folder that `write_model` wrote."""
    return restore(read_saved_words(folder), _bytes(folder / TREES))


def read_saved_words(folder: Path) -> ModelDescription:
    """Everything about the model in a folder but its trees."""
    return read_words(_bytes(folder / WORDS))


def write_model(model: FederatedForest, probability_precision: float, folder: Path) -> None:
    """Two files that any machine can check and read."""
    words, trees = save(model, probability_precision)
    folder.mkdir(parents=True)
    (folder / WORDS).write_text(words.model_dump_json(indent=1), encoding="utf-8")
    (folder / TREES).write_bytes(trees)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelRefused(f"{path.name} of the saved model cannot be read ({error.strerror})") from None
