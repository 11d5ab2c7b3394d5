"""FHIR Consent resources (R4): who objects, and who agrees, at a moment.

https://hl7.org/fhir/R4/consent.html. A Consent counts if it is `active`, has one of the scopes, and the period of its
root provision holds now. Its base is the type of the root provision, else what `policyRule` says (OPTIN, OPTOUT). A
provision within another is an exception to it: it changes the answer if its period holds now and it means what this
site does. Where two at one depth disagree, and where two Consents of a patient do, no counts. A condition that nobody
here can judge (an actor, a class of data, a label ...) makes a yes count for nothing, and is ignored for a no.

In a source whose dates are shifted a Consent's dates may be, too, or not: a no counts if it holds by the true clock or
by the source's; a yes, if it holds by the later of both.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from spinney.connectors.fhir.http import objects
from spinney.connectors.fhir.shelf import content_of, lines_in
from spinney.connectors.opt_out.identifiers import Named, listed_name, plain_id
from spinney.connectors.opt_out.lists import ListContent, ListSettings, Place
from spinney.connectors.sources import Wanted
from spinney.connectors.sources.fhir_bulk import FhirBulkSettings
from spinney.connectors.sources.fhir_rest import FhirRestSettings
from spinney.connectors.sources.files import FilesSettings
from spinney.errors import SourceFailed

CONSENT = "Consent"
Elsewhere = Annotated[FilesSettings | FhirRestSettings | FhirBulkSettings, Field(discriminator="kind")]
Answer = Literal["deny", "permit"]
STATES = {"draft", "proposed", "active", "rejected", "inactive", "entered-in-error"}
BASES: dict[str, Answer] = {"OPTIN": "permit", "OPTOUT": "deny", "OPTINR": "permit", "OPTOUTE": "deny"}
RESEARCH = ("HRESCH", "BIORCH", "CLINTRCH", "CLINTRCHNPC", "CLINTRCHPC", "PRECLINTRCH", "DSRCH", "POARCH", "TRANSRCH")
UNJUDGED = ("actor", "action", "securityLabel", "class", "dataPeriod", "data")
LENGTHS = {4: "%Y", 7: "%Y-%m", 10: "%Y-%m-%d"}


class NotUnderstood(Exception):
    """A Consent that is no Consent of R4; says what is wrong with it, never whose it is."""


class ConsentList(ListSettings):
    """Consent resources of the site's own FHIR source, or of another."""

    kind: Literal["consent"] = "consent"
    source: Elsewhere | None = Field(
        None, description="Where they are: kind fhir-rest, fhir-bulk or files; empty: in the site's own source."
    )
    scopes: tuple[str, ...] = Field(
        ("research",), min_length=1, description="Codes of Consent.scope that count, as code or system|code."
    )
    codes: tuple[str, ...] = Field(
        (),
        description="Codes of provisions that mean what this site does, as code or system|code; a patient agrees if "
        "all are permitted. Empty: a provision that permits only certain codes counts for nothing.",
    )
    purposes: tuple[str, ...] = Field(
        RESEARCH, description="Purposes that mean what this site does; a provision for others doesn't concern it."
    )

    @property
    def title(self) -> str:
        return "the Consent resources"

    def anchored(self, folder: Path) -> ListSettings:
        return self.model_copy(update={"source": self.source.anchored(folder)}) if self.source else self

    def read(self, place: Place) -> ListContent:
        said, broken, entries, unclear = {"deny": set[Named](), "permit": set[Named]()}, Counter[str](), 0, 0
        for content in self._resources(place):
            entries += 1
            try:
                found = _strictest([self.answer(content, at) for at in self._moments(place)])
            except NotUnderstood as reason:
                broken[str(reason)] += 1
                continue
            if found is None:
                continue
            who, answer = found
            if answer is None:
                unclear += 1
            else:
                said[answer].add(who)
        if broken:
            reasons = "; ".join(f"{count:,} {reason}" for reason, count in broken.most_common(5))
            raise SourceFailed(
                f"{self.title}: {broken.total():,} of {entries:,} can't be understood ({reasons}); mend them, or the "
                "source: until then nobody is pulled"
            )
        return ListContent(frozenset(said["deny"]), frozenset(said["permit"]), entries, unclear)

    def _moments(self, place: Place) -> list[Place]:
        """When a Consent has to hold: now, and in the site's own source when its dates say that it is now."""
        if self.source is not None or place.shifted is None:
            return [place]
        return [replace(place, now=moment) for moment in sorted((place.now, place.shifted))]

    def answer(self, content: Mapping[str, Any], place: Place) -> tuple[Named, Answer | None] | None:
        """Whom a Consent is about, and what it says now; None where it doesn't concern us or is not in force."""
        if content.get("resourceType") != CONSENT:
            raise NotUnderstood("are no Consent")
        if content.get("status") not in STATES:
            raise NotUnderstood("have no status of R4")
        if content["status"] != "active":
            return None
        scope, root = content.get("scope"), content.get("provision", {})
        if "decision" in content or isinstance(root, list) or (scope is None and "subject" in content):
            raise NotUnderstood("are of FHIR R5, and R4 is needed")
        if not isinstance(scope, dict) or not isinstance(root, dict):
            raise NotUnderstood("have no scope" if not isinstance(scope, dict) else "have a provision that is none")
        if not _meets(_codings(scope), self.scopes):
            return None
        who = _patient(content)
        base = next((BASES[word] for _, word in _codings(content.get("policyRule")) if word in BASES), None)
        answers = [self._decided(root, base, code, place) for code in self.codes or (None,)]
        if "deny" in answers:
            return who, "deny"
        return who, None if None in answers else "permit"

    def _decided(self, rule: Mapping[str, Any], base: Answer | None, code: str | None, place: Place) -> Answer | None:
        """What a provision and those within it say; None where it doesn't apply and says nothing."""
        own = _type(rule) or base
        if not self._applies(rule, own, code, place):
            return None
        inner = rule.get("provision", [])
        if not isinstance(inner, list) or not all(isinstance(one, dict) and _type(one) for one in inner):
            raise NotUnderstood("have a provision within another without a type")
        exceptions = {self._decided(one, None, code, place) for one in inner}
        answers: tuple[Answer, Answer] = ("deny", "permit")
        return next((one for one in answers if one in exceptions), own)

    def _applies(self, rule: Mapping[str, Any], own: Answer | None, code: str | None, place: Place) -> bool:
        if not _holds(rule.get("period"), place):
            return False
        purposes = [(str(one.get("system", "")), str(one.get("code", ""))) for one in objects(rule.get("purpose"))]
        if purposes and not _meets(purposes, self.purposes):
            return False
        named = [coding for one in objects(rule.get("code")) for coding in _codings(one)]
        if code is not None and named and not _meets(named, (code,)):
            return False
        if own == "deny":
            return True
        vague = "code" in rule and (code is None or not named)
        return not vague and not any(rule.get(one) for one in UNJUDGED)

    def _resources(self, place: Place) -> Iterator[Mapping[str, Any]]:
        opened = self.source.open(place.around) if self.source else place.source and place.source()
        if not opened:
            raise SourceFailed("opt_out: say under `source` where the Consent resources are")
        try:
            files = opened.pull([Wanted(CONSENT)], place.staging, lambda *_: None).files
        except SourceFailed as error:
            told = type(error)(f"{self.title}: {error}; until then nobody is pulled")
            raise told from None
        if CONSENT not in files:
            raise SourceFailed(
                f"{self.title}: the source has none; mend opt_out in site.yaml: until then nobody is pulled"
            )
        for path in files[CONSENT]:
            with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
                yield from (content_of(line) for line in lines_in(lines))


def _strictest(
    answers: Sequence[tuple[Named, Answer | None] | None],
) -> tuple[Named, Answer | None] | None:
    """A no of any moment, or else what is said at the last."""
    return next((one for one in answers if one is not None and one[1] == "deny"), answers[-1])


def _patient(content: Mapping[str, Any]) -> Named:
    patient = content.get("patient")
    about = patient if isinstance(patient, dict) else {}
    reference, logical = about.get("reference"), about.get("identifier")
    try:
        if isinstance(reference, str) and not reference.startswith("#") and _is_patient(reference):
            return listed_name(reference, "", "exact", "")
        if isinstance(logical, dict) and logical.get("system") and isinstance(logical.get("value"), str):
            return listed_name(logical["value"], str(logical["system"]), "exact", "")
    except SourceFailed:
        pass
    raise NotUnderstood("don't say whose they are")


def _is_patient(reference: str) -> bool:
    return reference.startswith(("urn:uuid:", "urn:oid:")) or plain_id(reference) != reference.strip()


def _type(rule: Mapping[str, Any]) -> Answer | None:
    kind = rule.get("type")
    if kind not in (None, "deny", "permit"):
        raise NotUnderstood("have a provision that neither permits nor denies")
    answer: Answer | None = kind
    return answer


def _codings(concept: object) -> list[tuple[str, str]]:
    codings = concept.get("coding") if isinstance(concept, dict) else None
    return [(str(one.get("system", "")), str(one.get("code", ""))) for one in objects(codings)]


def _meets(codings: Sequence[tuple[str, str]], wanted: Sequence[str]) -> bool:
    return any(word in wanted or f"{system}|{word}" in wanted for system, word in codings)


def _holds(period: object, place: Place) -> bool:
    """Whether now lies within a period; a day, a month or a year counts to its end."""
    if period is None:
        return True
    if not isinstance(period, dict):
        raise NotUnderstood("have a broken period")
    start, end = period.get("start"), period.get("end")
    zone = ZoneInfo(place.around.timezone)
    return (start is None or _moment(start, zone)[0] <= place.now) and (
        end is None or place.now < _moment(end, zone)[1]
    )


def _moment(word: object, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """From when to when a FHIR dateTime lasts."""
    text = str(word)
    try:
        if len(text) not in LENGTHS:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
            return moment.astimezone(UTC), (moment + timedelta(seconds=1)).astimezone(UTC)
        first = datetime.strptime(text, LENGTHS[len(text)])
        years = first.year + (len(text) == 4 or (len(text) == 7 and first.month == 12))
        after = {
            4: lambda: first.replace(year=years),
            7: lambda: first.replace(year=years, month=first.month % 12 + 1),
            10: lambda: first + timedelta(days=1),
        }[len(text)]()
    except (ValueError, OverflowError):
        raise NotUnderstood("have a broken period") from None
    return first.replace(tzinfo=zone).astimezone(UTC), after.replace(tzinfo=zone).astimezone(UTC)
