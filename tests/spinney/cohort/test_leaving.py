"""Nobody who objects is in it: the same house as one whose source never held the patient, for every kind of source."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spinney.cohort.encoded import read_encoded, write_encoded
from spinney.cohort.pull_report import PullResult
from spinney.configuration.site import SiteSettings
from spinney.study.study import Study
from spinney.trial.simulate import simulate
from tests.made_up import NOW, feature, pull_at, pull_open_at
from tests.made_up import study as study_of_stays
from tests.services.traces import Marks
from tests.spinney.cohort.objectors import KINDS, MARK, fixed_ids, listing, people, site_at, source_of, study_of

EVERYBODY, OTHERS = (fixed_ids(people(marked)) for marked in (True, False))


def marks_of(site: SiteSettings) -> Marks:
    """The identifier, its pseudonym, and a value that nobody else has."""
    hidden = site.vault.pseudonyms(pa.array([MARK]))[0].as_py()
    return Marks({"identifier": MARK, "pseudonym": hidden, "record number": "943 476"}, 188.31337)


def counted(result: PullResult) -> dict[str, Any]:
    """Everything that a report tells, but of the lists."""
    return {name: value for name, value in result.report.plain().items() if name != "objections"}


def compare(first: tuple[SiteSettings, PullResult], second: tuple[SiteSettings, PullResult], study: Study) -> None:
    """Two houses with the same rows, arrays and counts, bit for bit."""
    assert (first[1].cohort.digest, first[1].unripe.digest) == (second[1].cohort.digest, second[1].unripe.digest)
    assert counted(first[1]) == counted(second[1])
    one, other = (
        read_encoded(write_encoded(site.vault, result.cohort, study), study) for site, result in (first, second)
    )
    for name in ("X", "y", "patients", "part", "present"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.salt, one.no_newest) == (other.salt, other.no_newest)


@pytest.mark.parametrize("kind", KINDS)
def test_a_house_is_as_if_its_source_had_never_held_the_patient(tmp_path: Path, kind: str) -> None:
    study = study_of(kind)
    with source_of(kind, tmp_path / "a", EVERYBODY) as everybody, source_of(kind, tmp_path / "b", OTHERS) as others:
        listed = site_at(tmp_path / "listed", everybody, listing(tmp_path, f"Patient/{MARK}", "nobody"))
        never = site_at(tmp_path / "never", others)
        pulled = pull_at(study, listed, now=NOW)
        compare((listed, pulled), (never, pull_at(study, never, now=NOW)), study)
    counts = pulled.report.objections
    assert counts is not None
    assert (counts.listed, counts.unmatched, counts.objecting) == (2, 1, 1)
    assert marks_of(listed).found_below([tmp_path / "listed"]) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_who_objects_later_leaves_what_earlier_nights_have_kept(tmp_path: Path, kind: str) -> None:
    study, home = study_of(kind), tmp_path / "home"
    with source_of(kind, tmp_path / "a", EVERYBODY) as everybody, source_of(kind, tmp_path / "b", OTHERS) as others:
        before = site_at(home, everybody, {**listing(tmp_path), "may_be_empty": True})
        first = pull_at(study, before, now=NOW)
        write_encoded(before.vault, first.cohort, study)
        before.vault.accept(first.cohort)
        assert {word for words in marks_of(before).found_below([home]).values() for word in words} >= {"pseudonym"}
        after = site_at(home, everybody, listing(tmp_path, MARK))
        pulled = pull_at(study, after, now=NOW)
        never = site_at(tmp_path / "never", others)
        compare((after, pulled), (never, pull_at(study, never, now=NOW)), study)
    assert marks_of(after).found_below([home]) == {}
    assert after.vault.is_accepted(after.vault.cohorts(study.name)[0])


def told_of(site: SiteSettings, result: PullResult, study: Study) -> dict[str, Any]:
    """What a house tells when the next epoch opens, beside two others: its vector, its trees, its sums, the model."""
    cohort = read_encoded(write_encoded(site.vault, result.cohort, study), study)
    beside = {name: replace(cohort, salt=name) for name in ("birch", "cedar")}
    night = simulate(study, {"ash": cohort, **beside}, round=8)
    told = {name: value for name, value in night.kept["ash"].items() if name.startswith(("told-", "lent"))}
    return {name: np.array(value).tobytes() for name, value in told.items()} | {"model": night.model_digest}


@pytest.mark.parametrize("kind", ["ndjson", "sql", "omop"])
def test_the_next_epochs_vector_trees_and_sums_are_those_of_a_house_that_never_knew_the_patient(
    tmp_path: Path, kind: str
) -> None:
    small: dict[str, Any] = {"forest": {"trees": 6}, "choice": {"bootstrap": 100}}
    small |= {"privacy": {"smallest_cohort": 10, "lent_leaf": 5}}
    small |= {"imputation": "federated-means"}  # a house that fills gaps keeps what it has told
    weights = [feature(how, how) | {"range": [0, 200]} for how in ("last", "mean", "min", "max", "delta")]
    study, home = Study.model_validate(study_of_stays(*weights).model_dump(mode="json") | small), tmp_path / "home"
    everybody, others = (fixed_ids(people(marked, 60, again=30)) for marked in (True, False))
    with source_of(kind, tmp_path / "a", everybody) as there, source_of(kind, tmp_path / "b", others) as gone:
        before = site_at(home, there, {**listing(tmp_path), "may_be_empty": True})
        first = told_of(before, pull_at(study, before, now=NOW), study)
        after, never = site_at(home, there, listing(tmp_path, MARK)), site_at(tmp_path / "never", gone)
        second, expected = (told_of(site, pull_at(study, site, now=NOW), study) for site in (after, never))
    assert {"lent", "told-vector", "told-sums"} <= {*expected}
    assert second == expected
    assert first["lent"] != expected["lent"]


@pytest.mark.parametrize("kind", ["ndjson", "sql", "csv"])
def test_the_same_holds_for_those_who_are_to_be_scored(tmp_path: Path, kind: str) -> None:
    study, home = study_of(kind), tmp_path / "home"
    with source_of(kind, tmp_path / "a", EVERYBODY) as everybody:
        site = site_at(home, everybody, listing(tmp_path, MARK))
        rows = pull_open_at(study, site, now=NOW)
    assert rows.report.objections is not None
    assert rows.report.objections.objecting == 1
    assert marks_of(site).found_below([home]) == {}


def test_the_counts_say_how_many_and_never_who(tmp_path: Path) -> None:
    with source_of("ndjson", tmp_path / "a", EVERYBODY) as everybody:
        site = site_at(tmp_path / "home", everybody, listing(tmp_path, MARK))
        report = pull_at(study_of("ndjson"), site, now=NOW).report
    assert MARK not in repr(report)
    assert asdict(report.objections)["objecting"] == 1  # type: ignore[call-overload]
