"""What a site's report says about its data, and about what left the house."""

from __future__ import annotations

from dataclasses import replace

from spinney.reports.site import site_page
from tests.spinney.reports.reported import texts


def test_a_handful_of_patients_is_told_as_a_handful(facts):
    assert "died before prediction time fewer than 5" in texts(site_page(facts))


def test_shifted_dates_are_told(facts):
    shifted = replace(facts, pulled=replace(facts.pulled, as_of="2131-05-01"))
    assert "The source's dates are shifted: 2131-05-01 counts as now." in texts(site_page(shifted))
    assert "counts as now" not in texts(site_page(facts))


def test_what_left_the_house_is_told_as_the_audit_log_has_it(facts):
    words = texts(site_page(facts))
    assert "3 messages, 18.1 kB; lines 2 to 4 of the audit log." in words
    assert "Sent to coordinator: averages and shares per variable" in words
    assert "Received from" not in words
