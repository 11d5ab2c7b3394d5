"""What a step is called in the Prefect UI."""

from __future__ import annotations

import pytest

from spinney.federation.messages import EnrolOrder, FillOrder, GrowOrder
from spinney.house.step_titles import title
from tests.spinney.house.recorded import messages, wood

OF_ONE_ALGORITHM = ("CombineOrder", "CountOrder")
ORDERS = {name: one for name, one in messages().items() if name.endswith("Order") and name not in OF_ONE_ALGORITHM}


def test_every_step_that_algorithms_share_is_called_by_what_it_does() -> None:
    study = wood("bofrf", "masked")
    titles = {name: title("step", order, study) for name, order in ORDERS.items()}
    assert len(titles) == 12
    assert [name for name, words in titles.items() if words == "answer step"] == []


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (GrowOrder(("ash",)), "grow 6 trees"),
        (EnrolOrder(3), "join the means of round 3"),
        (FillOrder("masked", 1, ("ash", "elm", "fir")), "add to the means of 3 sites"),
    ],
)
def test_a_title_has_numbers(order: object, words: str) -> None:
    assert title("step", order, wood("bofrf", "masked")) == words  # type: ignore[arg-type]


def test_an_algorithm_s_own_step_is_called_by_its_name() -> None:
    assert title("combine", messages()["CombineOrder"], wood("boppid", "masked")) == "answer combine"
    assert title("count", messages()["CountOrder"], wood("dp-forest", "masked")) == "answer count"
