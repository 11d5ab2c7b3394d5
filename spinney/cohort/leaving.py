"""What a pull does about those who object: asks who they are, and lets them leave what earlier nights have kept."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from spinney.cohort.objections import (
    ObjectionCounts,
    ObjectionJudge,
    Objections,
    OptOut,
    forget_store_that_lacks_somebody,
    remember_store,
    who_has_objected,
)
from spinney.cohort.purge import Gone, Purged, forget_left_handover, gone_of, purge, purge_others
from spinney.cohort.vault import Vault
from spinney.study.study import Study


def judge_of(opt_out: OptOut, study: Study, vault: Vault, staging: Path, now: datetime) -> ObjectionJudge | None:
    """Who has objected as of now, before anything is pulled; None where a site has no lists and needs none."""
    if not opt_out.lists and study.consent != "required":
        return None
    objections = who_has_objected(opt_out, study, vault, staging, now)
    forget_store_that_lacks_somebody(vault, study, objections)
    return ObjectionJudge(objections)


def leave_out(vault: Vault, study: Study, judge: ObjectionJudge) -> ObjectionCounts:
    """Let them leave what earlier nights have kept; what came of it in counts."""
    remember_store(vault, study, judge)
    if judge.objections.anybody:
        forget_left_handover(vault, study.name)
        purge(vault, study.name, _gone(vault, judge.objections, judge))
        purge_others(vault, study.name, gone_of(vault, [*_own_ids(judge.objections), *judge.left_out]))
    return judge.counts


def leave_begun_round(vault: Vault, study: Study, objections: Objections) -> Purged:
    """Let them leave the cohorts of a round that was begun and is not running, by the source's own ids alone."""
    return purge(vault, study.name, _gone(vault, objections, None), pinned=True)


def _gone(vault: Vault, objections: Objections, judge: ObjectionJudge | None) -> Gone:
    out = [*_own_ids(objections), *(judge.left_out if judge else ())]
    if not objections.required:
        return gone_of(vault, out)
    agreed = [name.value for name in objections.agrees if not name.system and name.compare == "exact"]
    return gone_of(vault, out, [*agreed, *(judge.staying if judge else ())])


def _own_ids(objections: Objections) -> list[str]:
    """Those who are listed by the source's own id, also where the source has them no more."""
    return [name.value for name in objections.objects if not name.system]
