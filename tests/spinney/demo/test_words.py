"""How hospitals write what the study calls by another name, and that their site.yaml says what it means."""

from __future__ import annotations

import pytest

from spinney.connectors.units import Conversion, conversion
from spinney.demo.words import CONDITIONS, DRUGS, LABORATORY, MEASURES, MONITOR_UNITS, Habits

OWN = Habits(other_units=True, local_codes=True, classifications=True, letters_for_sex=True)


def test_a_hospital_without_habits_needs_no_map():
    plain = Habits()
    assert (plain.code_map("ash"), plain.unit_map(), plain.assumed_units()) == ({}, {}, {})


def test_every_code_of_a_hospital_leads_back_to_the_study_s():
    codes = OWN.code_map("beech")
    for name, measure in MEASURES.items():
        assert codes.get(OWN.code(name, "beech"), OWN.code(name, "beech")) == measure.code
    assert all(codes[OWN.condition(name)] == code for name, (code, _) in CONDITIONS.items())
    assert all(codes[OWN.drug(name)] == code for name, (code, _) in DRUGS.items())


def test_the_laboratory_s_own_codes_carry_the_hospital_s_name():
    assert {OWN.code(name, "beech").partition("|")[0] for name in LABORATORY} == {"urn:beech:laboratory"}


@pytest.mark.parametrize("name", [name for name, measure in MEASURES.items() if measure.other])
def test_the_factor_to_another_unit_is_the_one_that_units_themselves_give(name: str):
    """Apart from substances: their molar mass is a matter of chemistry, and the study has it."""
    unit, factor, _ = OWN.written(name)
    found = conversion(unit, MEASURES[name].unit, None)
    if isinstance(found, Conversion):
        assert found.factor == pytest.approx(1 / factor)
    else:
        assert unit in ("umol/L", "mmol/L", "pmol/L")


def test_units_in_the_manner_of_monitors_are_mapped_and_units_that_nobody_writes_assumed():
    assert {OWN.unit_map()[OWN.written(name)[0]] for name in ("systolic", "heart_rate")} == set(MONITOR_UNITS)
    assert Habits(unitless=("potassium",)).assumed_units() == {MEASURES["potassium"].code: "mmol/L"}
