"""A site after a pull in which somebody objects: silent trees, others that grow in their place, and the audit log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spinney.choice.model import FederatedForest
from spinney.cohort.purge import silent_trees
from spinney.cohort.tree_membership import unseen_by
from spinney.configuration.site import read_site
from spinney.connectors.mlflow import Registry, lineage_of
from spinney.demo.federation import Village
from spinney.house.audit import Audit
from spinney.tasks.site import honour_objections
from tests.federations import breast_study, breast_table, breast_village
from tests.made_up import pull_at
from tests.nights import night
from tests.servers.migrated import registry_in

SITES = ("ash", "birch", "cedar")
STUDY = breast_study(split={"newest": 0})


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Village:
    """Ash uses the model of a first night."""
    made = breast_village(tmp_path_factory.mktemp("objecting"), SITES, split={"newest": 0})
    _, parts = night(made)
    part, registry = parts["ash"], registry_in(made.home("ash"))
    assert part.outcome is not None
    lineage = lineage_of(STUDY, "ash", part.outcome.model, part.number, part.cohort.digest)
    registry.promote("breast", registry.register(STUDY, part.outcome, lineage).number)
    read_site(made.site_file("ash")).vault.accept(part.cohort)
    return made


def own(model: FederatedForest) -> set[str]:
    return {tree for tree, owner in zip(model.forest_.digests, model.owners_, strict=True) if owner == "ash"}


def test_who_objects_later_silences_trees_and_where_few_are_left_others_are_grown_at_home(
    village: Village, tmp_path: Path
) -> None:
    path = village.site_file("ash")
    registry = Registry(village.home("ash"), read_site(path).registry)
    (_, before), people = registry.champion("breast") or pytest.fail("no champion"), breast_table()["patient"]
    objecting = [*people.iloc[:: len(SITES)]][:12]
    (tmp_path / "list.txt").write_text("\n".join(objecting))
    path.write_text(path.read_text() + f"\nopt_out: [{{kind: file, path: '{tmp_path / 'list.txt'}'}}]\n")
    site = read_site(path)
    pulled = pull_at(STUDY, site)
    honour_objections(site, STUDY, pulled.report.objections)
    silent = silent_trees(site.vault, "breast")
    assert silent >= own(before)
    version, after = registry.champion("breast") or pytest.fail("no champion")
    assert len(own(after)) == len(own(before)) == STUDY.forest.trees
    assert not own(after) & silent
    foreign = {*before.forest_.digests} - own(before)
    assert {*after.forest_.digests} - own(after) == foreign
    assert np.isclose(after.weights_.sum(), before.weights_.sum())
    lineage = registry.lineage(version)
    assert (lineage.silenced, lineage.regrown) == (STUDY.forest.trees, STUDY.forest.trees)
    assert "6 others were grown in their place" in registry.evidence(version)["silenced"]
    left = site.vault.cohorts("breast")[0]
    assert 0.1 < unseen_by(site.vault, "breast", sorted(own(after)), left).mean() < 0.9  # the vault knows them
    last = [one.entry for one in Audit(site.home / "audit.jsonl").lines() if one.entry.kind == "Objections"][-1]
    assert last.words.startswith("12 identifiers object, 0 of them of nobody whom the source has; 12 patients left out")
    assert pulled.report.objections is not None
    assert last.digest == pulled.report.objections.digest
    assert not any(who in (site.home / "audit.jsonl").read_text() for who in objecting)
    honour_objections(site, STUDY, pulled.report.objections)
    assert [one.number for one in registry.versions("breast")] == [version.number]
