"""DuckDB's SQL for the table of shapes: the members to read, with their types, and expressions over them.

Everything that may be wrong in the source (dates, numbers) is read as text, so that it can be judged and not just lost.
"""

from __future__ import annotations

from spinney.connectors.duck import name, text, text_list
from spinney.connectors.fhir.shapes import DO_NOT, Shape

CODING = 'STRUCT("system" VARCHAR, code VARCHAR)'
CONCEPT = f'STRUCT(coding {CODING}[], "text" VARCHAR)'
PERIOD = 'STRUCT("start" VARCHAR, "end" VARCHAR)'
QUANTITY = 'STRUCT("value" VARCHAR, comparator VARCHAR, unit VARCHAR, code VARCHAR)'
REFERENCE = "STRUCT(reference VARCHAR)"
CONCEPT_OR_REFERENCE = f"STRUCT(concept {CONCEPT}, reference {REFERENCE})"
INGREDIENTS = f"STRUCT(itemCodeableConcept {CONCEPT}, itemReference {REFERENCE}, item {CONCEPT_OR_REFERENCE})[]"
CONTAINED = f"STRUCT(resourceType VARCHAR, id VARCHAR, code {CONCEPT}, ingredient {INGREDIENTS})[]"
DISPOSITION = f"STRUCT(dischargeDisposition {CONCEPT})"
ENVELOPE = {
    "resourceType": "VARCHAR",
    "id": "VARCHAR",
    "meta": "STRUCT(versionId VARCHAR, lastUpdated VARCHAR)",
    "status": "VARCHAR",
}
VALUES = {
    "valueQuantity": QUANTITY,
    "valueCodeableConcept": CONCEPT,
    "valueString": "VARCHAR",
    "valueInteger": "VARCHAR",
    "valueBoolean": "BOOLEAN",
}
COMPONENT = "STRUCT(code " + CONCEPT + ", " + ", ".join(f"{member} {kind}" for member, kind in VALUES.items()) + ")[]"
TYPES = {
    "actualPeriod": PERIOD,
    "adherence": f"STRUCT(code {CONCEPT})",
    "admission": DISPOSITION,
    "class": "JSON",  # a Coding in R4, a list of concepts in R5
    "clinicalStatus": "JSON",
    "code": CONCEPT,
    "dataAbsentReason": CONCEPT,
    "encounter": REFERENCE,
    "hospitalization": DISPOSITION,
    "medication": CONCEPT_OR_REFERENCE,
    "medicationCodeableConcept": CONCEPT,
    "partOf": REFERENCE,
    "period": PERIOD,
    "type": CONCEPT,
    "vaccineCode": CONCEPT,
    "verificationStatus": "JSON",  # a concept; a plain word before R4
}
MEDICATION_MEMBERS = {**ENVELOPE, "code": CONCEPT, "ingredient": INGREDIENTS, "contained": CONTAINED}
GROUP_MEMBERS = {
    **ENVELOPE,
    "active": "VARCHAR",
    "actual": "VARCHAR",
    "membership": "VARCHAR",  # R5: instead of actual
    "identifier": 'STRUCT("system" VARCHAR, "value" VARCHAR)[]',
    "code": CONCEPT,
    "quantity": "VARCHAR",
    "characteristic": "STRUCT(exclude VARCHAR)[]",
    "member": f"STRUCT(entity {REFERENCE}, period {PERIOD}, inactive VARCHAR)[]",
}
PATIENT_MEMBERS = {
    **ENVELOPE,
    "birthDate": "VARCHAR",
    "gender": "VARCHAR",
    "deceasedDateTime": "VARCHAR",
    "deceasedBoolean": "BOOLEAN",
}
NO_TEXT = "NULL::VARCHAR"
NO_VALUE = (
    f"nth := 0, number := {NO_TEXT}, unit := {NO_TEXT}, comparator := {NO_TEXT}, words := {NO_TEXT}, again := false"
)


def columns(shape: Shape) -> dict[str, str]:
    """All JSON members to read, with their types."""
    paths = (*shape.codes, *shape.time, *shape.until, *shape.recorded, shape.status, *shape.never)
    paths = (*paths, *shape.encounter, *shape.parent, *shape.discharge, *shape.older, *shape.once_a_word)
    members = {member: _type(member) for member in (path.partition(".")[0] for path in paths)}
    members |= {"type": f"{CONCEPT}[]"} if shape.visited else {}
    values = {**VALUES, "component": COMPONENT} if shape.valued else {}
    drug = {"medicationReference": REFERENCE, "contained": CONTAINED} if shape.medication else {}
    return {**ENVELOPE, shape.subject: REFERENCE, **members, **values, **drug}


def _type(member: str) -> str:
    return TYPES.get(member, PERIOD if member.endswith("Period") else "VARCHAR")


def member_path(member: str) -> str:
    """Period.start -> "Period"."start"."""
    return ".".join(name(part) for part in member.split("."))


def first(members: tuple[str, ...], end: str = "") -> str:
    """The first of several members that is there."""
    paths = [member_path(member + end) for member in members] or [NO_TEXT]
    return f"coalesce({', '.join(paths)})" if len(paths) > 1 else paths[0]


def status(shape: Shape) -> str:
    """The word with which the resource says that nothing happened, or else its status."""
    plain = member_path(shape.status)
    if _type(shape.status) == "JSON":
        plain = f"{_words(shape.status)}[1]"
    elif shape.renamed:
        renamed = " ".join(f"WHEN {text(new)} THEN {text(old)}" for new, old in shape.renamed.items())
        plain = f"CASE {plain} {renamed} ELSE {plain} END"
    return f"coalesce({', '.join([*(_never(member, words) for member, words in shape.never.items()), plain])})"


def _never(member: str, words: tuple[str, ...]) -> str:
    if words == ("true",):
        return f"CASE WHEN {member_path(member)} = 'true' THEN {text(DO_NOT)} END"
    if _type(member) == "VARCHAR" and "." not in member:
        return f"CASE WHEN {member_path(member)} IN ({text_list(words)}) THEN {member_path(member)} END"
    found = f"[word for word in {_words(member)} if word IN ({text_list(words)})][1]"
    return f"CASE WHEN {name(member.partition('.')[0])} IS NOT NULL THEN {found} END"  # hardly any resource has it


def _words(member: str) -> str:
    """All codes of a concept."""
    if _type(member) == "JSON":
        return f"json_extract_string({member_path(member)}, '$.coding[*].code')"
    return f"[one.code for one in {member_path(member)}.coding]"


def is_older(shape: Shape) -> str:
    """Whether it was written in FHIR STU3 or older."""
    there = [f"{member_path(member)} IS NOT NULL" for member in shape.older]
    words = [f"json_type({member_path(member)}) = 'VARCHAR'" for member in shape.once_a_word]
    return f"coalesce({' OR '.join([*there, *words])}, false)"


def medication_reference(shape: Shape) -> str:
    """Reference to the Medication that says what it was."""
    return "coalesce(medicationReference.reference, medication.reference.reference)" if shape.medication else NO_TEXT


def _codings(shape: Shape) -> str:
    """SQL list of all codings of a resource. `drug` is what the Medication that it refers to is, and consists of."""
    if shape.visited:
        return 'flatten([one.coding for one in "type"])'
    own = [f"{member_path(member)}.coding" for member in shape.codes]
    if not shape.medication:
        return own[0]
    return f"list_distinct({_joined(*own, contained_codings(), 'drug')})"


def contained_codings() -> str:
    """What is contained is there because the resource refers to it, and be it as an ingredient."""
    inner = "[list_concat(piece.itemCodeableConcept.coding, piece.item.concept.coding) for piece in one.ingredient]"
    return f"flatten([list_concat(one.code.coding, flatten({inner})) for one in contained])"


def _joined(*lists: str) -> str:
    joined = lists[0]
    for one in lists[1:]:
        joined = f"list_concat({joined}, {one})"
    return joined


def parts_sql(shape: Shape) -> str:
    """SQL list of all that a resource says: a part per coding of what it is, of its value and of its components.

    A resource without any coding is one part. `nth` is 0 for the resource itself, and each component is an event.
    """
    codings = _codings(shape)
    if shape.visited:
        return _encounter_parts(shape, codings)
    if not shape.valued:
        return _coded(codings, NO_VALUE)
    own, inner = _valued(codings, "0", ""), _valued("piece.code.coding", "nth", "piece.")
    whole = f"{own} || flatten([{inner} for piece, nth in component])"
    return f"CASE WHEN component IS NULL THEN {own} ELSE {whole} END"  # joining lists costs as much as making them


def _valued(codings: str, nth: str, at: str) -> str:
    concept, quantity = f"{at}valueCodeableConcept", f"{at}valueQuantity"
    number = f"coalesce({quantity}.value, {at}valueInteger, CAST(CAST({at}valueBoolean AS INTEGER) AS VARCHAR))"
    unit = f"coalesce({quantity}.code, {quantity}.unit)"
    same = f"nth := CAST({nth} AS INTEGER), number := {number}, unit := {unit}, comparator := {quantity}.comparator"
    words = f"coalesce({_code(f'{concept}.coding[1]')}, {concept}.text, {at}valueString)"
    alone = _coded(codings, f"{same}, words := {words}, again := false")
    of_each = f"list_append([{_code('it')} for it in {concept}.coding], {concept}.text)"
    several = f"flatten([{_coded(codings, f'{same}, words := word, again := nth_word > 1')} for word, nth_word in "
    several += f"list_filter({of_each}, lambda said: said IS NOT NULL)])"
    return f"CASE WHEN len({concept}.coding) > 0 THEN {several} ELSE {alone} END"


def _coded(codings: str, same: str) -> str:
    """SQL list with a part per coding; one without a code if there is none."""
    part = f"struct_pack(code := {{}}, {same})"
    coded = part.format("coalesce(one.system, '') || '|' || one.code")
    return f"CASE WHEN len({codings}) > 0 THEN [{coded} for one in {codings}] ELSE [{part.format(NO_TEXT)}] END"


def _code(coding: str) -> str:
    return f"coalesce({coding}.system || '|' || {coding}.code, {coding}.code)"


def _encounter_parts(shape: Shape, codings: str) -> str:
    """A part for every type, class and way of being discharged."""
    classes = (
        "CASE json_type(\"class\") WHEN 'OBJECT' THEN [json_extract_string(\"class\", '$.code')] "
        "ELSE json_extract_string(\"class\", '$[*].coding[*].code') END"
    )
    left = first(shape.discharge, ".coding")
    pack = f'struct_pack(code := kind, {NO_VALUE}, "class" := sort, discharge := way)'
    ways, kinds = (f"[coded(one) for one in {some}]" for some in (left, codings))
    axes = [("kind", kinds), ("sort", classes), ("way", ways)]
    for axis, of in axes:
        pack = f"[{pack} for {axis} in {_or_nothing(of)}]"
    return f"flatten(flatten({pack}))"


def _or_nothing(some: str) -> str:
    return f"CASE WHEN len({some}) > 0 THEN {some} ELSE [{NO_TEXT}] END"
