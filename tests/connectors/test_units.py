"""Units of measure: what converts, by how much, and why not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spinney.connectors import units
from spinney.connectors.units import INCONVERTIBLE, NO_UNIT, UNKNOWN, Conversion, conversion
from tests.made_up import GLUCOSE, RIPENER, STAY, feature, observation, patient, pulled, study


@pytest.mark.parametrize(
    ("unit", "target", "molar_mass", "value", "expected"),
    [
        ("[lb_av]", "kg", None, 150, 68.0388555),
        ("[in_i]", "cm", None, 70, 177.8),
        ("[degF]", "Cel", None, 98.6, 37.0),
        ("Cel", "[degF]", None, 37.0, 98.6),
        ("K", "Cel", None, 310.15, 37.0),
        ("kPa", "mm[Hg]", None, 16, 120.0098),
        ("g/L", "g/dL", None, 140, 14.0),
        ("10*3/uL", "10*9/L", None, 250, 250.0),
        ("%", "1", None, 45, 0.45),
        ("{score}", "1", None, 7, 7.0),
        ("/min", "{beats}/min", None, 60, 60.0),
        ("mmol/L", "mg/dL", 180.156, 5.0, 90.078),
        ("umol/L", "mg/dL", 113.12, 100.0, 1.1312),
        ("mg/dL", "mmol/L", 180.156, 90.078, 5.0),
    ],
)
def test_values_are_converted_by_a_factor_and_an_offset(
    unit: str, target: str, molar_mass: float | None, value: float, expected: float
) -> None:
    by = conversion(unit, target, molar_mass)
    assert isinstance(by, Conversion)
    assert value * by.factor + by.offset == pytest.approx(expected, rel=1e-5)


def test_the_same_unit_changes_no_bit_and_needs_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "_registry", lambda: pytest.fail("not needed"))
    assert conversion("mg/dL", "mg/dL") == Conversion(1.0, 0.0)


@pytest.mark.parametrize(
    ("unit", "target", "reason"),
    [
        ("furlong per fortnight", "kg", UNKNOWN),
        ("mmHg", "mm[Hg]", UNKNOWN),
        ("((((", "kg", UNKNOWN),
        ("kg", "cm", INCONVERTIBLE),
        ("mmol/L", "mg/dL", INCONVERTIBLE),
        ("dB", "1", INCONVERTIBLE),
        (None, "kg", NO_UNIT),
        (" ", "kg", NO_UNIT),
    ],
)
def test_what_does_not_convert_has_a_reason(unit: str | None, target: str, reason: str) -> None:
    assert conversion(unit, target) == reason


def test_a_pair_of_units_is_looked_up_once_however_many_rows_have_it(
    tmp_path: Path,
) -> None:
    units._computed.cache_clear()
    weights = [observation(f"2023-01-05T10:00:{second:02d}Z", 150.0, unit="[lb_av]") for second in range(50)]
    pulled(tmp_path, study(feature("a", "last"), feature("b", "max")), [patient(), STAY, RIPENER, *weights])
    assert units._computed.cache_info().misses == 1


def test_values_with_a_unit_that_does_not_convert_are_in_quarantine_and_the_note_says_what_to_do(
    tmp_path: Path,
) -> None:
    sugar = feature("sugar", "last", codes=[GLUCOSE]) | {"unit": "mg/dL"}
    bad = [
        observation("2023-01-05", 5.0, unit="mmol/L", code=GLUCOSE),
        observation("2023-01-06", 5.0, unit="dollops", code=GLUCOSE),
        observation("2023-01-07", code=GLUCOSE, valueQuantity={"value": 5.0}),
    ]
    good = observation("2023-01-02", 90.0, unit="mg/dL", code=GLUCOSE)
    report = pulled(tmp_path, study(sugar), [patient(), STAY, RIPENER, good, *bad]).report
    assert report.quarantined == {
        ("Observation", INCONVERTIBLE): 1,
        ("Observation", UNKNOWN): 1,
        ("Observation", NO_UNIT): 1,
    }
    assert any("LOINC 2339-0: 1 values in dollops" in note and "site.yaml" in note for note in report.quoting)
    assert not any("dollops" in note for note in report.for_logs)


def test_a_site_maps_its_own_units_and_says_which_unit_nobody_wrote(tmp_path: Path) -> None:
    plain = observation("2023-01-05", valueQuantity={"value": 60.0})
    stone = observation("2023-01-06", 1.0, unit="st")
    maps = {"units": {"st": "[stone_av]"}, "assumed_units": {"http://loinc.org|29463-7": "kg"}}
    result = pulled(
        tmp_path, study(feature("a", "first"), feature("b", "last")), [patient(), STAY, RIPENER, plain, stone], **maps
    )
    assert not result.report.quarantined
    assert result.report.rows == 1


def test_the_table_of_units_is_made_only_once():
    code = (
        "import gc, pint\n"
        "from spinney.connectors.units import conversion\n"
        "conversion('mg/dL', 'mmol/L', 180.16)\n"
        "print(sum(issubclass(type(one), pint.UnitRegistry) for one in gc.get_objects()))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "1\n"
