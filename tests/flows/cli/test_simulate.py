"""spinney simulate: the table for people, the JSON for scripts, and one clear line where something is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from spinney.configuration.study_file import read_study
from spinney.flows.cli import main

SITES = ("ash", "beech", "cedar", "elm")
STUDY = """\
name: wood
features:
  - {name: age, kind: continuous, range: [0, 100]}
  - {name: lactate, kind: continuous, range: [0, 10]}
  - {name: ward, kind: categorical, categories: [medicine, surgery]}
label: {name: died}
forest: {trees: 5, max_depth: 4}
choice: {bootstrap: 100, folds: 3}
"""


ONCE = ("--repeats", 1)  # unless a test is about many splits


def spinney(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def patients(seed: int, rows: int = 140) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, lactate = rng.uniform(20, 95, rows).round(), rng.uniform(0, 9, rows).round(1)
    odds = 0.08 * (age - 60) + 0.7 * (lactate - 4.5)
    died = rng.random(rows) < 1 / (1 + np.exp(-odds))
    ward = rng.choice(["medicine", "surgery"], rows)
    return pd.DataFrame({"age": age, "lactate": lactate, "ward": ward, "died": died.astype(int)})


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    for seed, site in enumerate(SITES):
        patients(seed).to_csv(folder / f"{site}.csv", index=False)
    return folder


@pytest.fixture
def study(tmp_path: Path) -> Path:
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    return file


def result(*words: object) -> dict:
    """What a run over one split writes as JSON to stdout."""
    answer = spinney("simulate", *ONCE, *words, "--json", "-")
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def refused(*words: object) -> str:
    """The one line that a refused run says on stderr."""
    answer = spinney("simulate", *words)
    assert answer.exit_code == 2
    assert answer.stdout == ""
    return answer.stderr.strip()


def test_people_get_a_table_with_one_line_per_site(study, tables):
    answer = spinney("simulate", study, "--data", tables, *ONCE)
    assert answer.exit_code == 0
    lines = answer.stdout.splitlines()
    assert lines[0] == "wood: would bofrf help? (one split, a throw of dice)"
    heading = "site rows positives alone together gain (95 %) in use"
    assert " ".join(next(line for line in lines if "positives" in line).split()) == heading
    for site in SITES:
        row = next(line for line in lines if line.strip().startswith(f"{site} "))
        assert row.split()[1] == "140"
        assert row.split()[-1] in {"bofrf", "local"}
    assert "of sealed parcels passed between sites" in lines[-1]
    assert max(map(len, lines)) <= 80


def test_the_answer_comes_before_the_figures_a_sentence_per_site(study, tables):
    lines = spinney("simulate", study, "--data", tables, "--repeats", 2).stdout.splitlines()
    assert lines[0] == "wood: would bofrf help? (2 splits)"
    for site, line in zip(SITES, lines[2:6], strict=True):
        assert re.fullmatch(rf"[+=?-] {site}: (yes|no harm|no|can't tell yet).*\.", line)


def test_many_splits_are_told_as_means_and_the_first_one_s_model(study, tables):
    every = [result(study, "--data", tables, "--seed", seed)["sites"]["ash"] for seed in (3, 4)]
    report = result(study, "--data", tables, "--seed", 3, "--repeats", 2)
    site = report["sites"]["ash"]
    assert report["repeats"] == site["splits"] == 2
    assert site["auroc"]["local"] == pytest.approx(np.mean([one["auroc"]["local"] for one in every]))
    assert site["gain"]["auroc"]["value"] == pytest.approx(np.mean([one["gain"]["auroc"]["value"] for one in every]))
    assert report["model_digest"] == result(study, "--data", tables, "--seed", 3)["model_digest"]
    assert site["verdict"]["word"] in {"yes", "no harm", "no", "can't tell yet"}


def test_what_a_hospital_gets_that_brings_nothing_is_ranked_on_all_its_rows(study, tables):
    report = result(study, "--data", tables, "--leave-one-site-out")
    assert set(report["newcomers"]) == {*SITES}
    assert all(0.5 < one["low"] < one["value"] < one["high"] for one in report["newcomers"].values())


def test_the_gain_is_drawn_against_the_number_of_sites(study, tables, tmp_path):
    page = tmp_path / "answer.html"
    answer = spinney("simulate", study, "--data", tables, *ONCE, "--subsets", "--html", page)
    assert "Gain over local by the number of sites" in answer.stdout
    sizes = {one["size"]: one["tried"] for one in result(study, "--data", tables, "--subsets")["by_sites"]["ash"]}
    assert sizes == {3: 3, 4: 1}  # of the four groups of three, ash is in three
    told = page.read_text()
    assert "With fewer sites" in told
    assert "<svg" in told
    assert "<script" not in told


def test_scripts_get_the_same_as_json(study, tables):
    report = result(study, "--data", tables)
    assert report["study"] == "wood"
    assert len(report["model_digest"]) == 64
    assert set(report["sites"]) == {*SITES}
    site = report["sites"]["ash"]
    assert {"rows", "positives", "auroc", "gain", "choice"} <= set(site)
    assert set(site["auroc"]) == {"local", "fedrf", "bofrf", "personalised", "chosen"}
    assert set(site["gain"]["auroc"]) == {"value", "low", "high"}
    assert {"model", "reason", "threshold", "calibration", "question", "notes"} <= set(site["choice"])
    assert (site["rows"], site["positives"]) == (140, int(patients(0)["died"].sum()))


def test_a_json_file_is_written_beside_the_table(study, tables, tmp_path):
    answer = spinney("simulate", study, "--data", tables, *ONCE, "--json", tmp_path / "result.json")
    report = json.loads((tmp_path / "result.json").read_text())
    shown = f"{report['sites']['ash']['auroc']['chosen']:.3f}"
    assert shown in answer.stdout
    assert report["model_digest"][:16] in answer.stdout


def test_a_json_file_in_a_folder_that_is_not_there_is_refused_before_any_work(study, tables, tmp_path):
    answer = spinney("simulate", study, "--data", tables, *ONCE, "--json", tmp_path / "nowhere" / "result.json")
    assert answer.exit_code == 2
    assert "is not a folder; make it first" in answer.stderr


def test_a_model_can_be_reproduced_with_any_number_of_workers(study, tables):
    digests = {result(study, "--data", tables, "--workers", workers)["model_digest"] for workers in (1, 2)}
    assert len(digests) == 1


def test_the_secure_sum_does_not_change_the_model(study, tables):
    reports = [
        result(study, "--data", tables, "--secure-sum", mode) for mode in ("masked", "ring", "trusted-third-party")
    ]
    assert [report["secure_sum"] for report in reports] == ["masked", "ring", "trusted-third-party"]
    assert len({report["model_digest"] for report in reports}) == 1


def test_options_stand_instead_of_what_the_study_says(study, tables):
    plain = result(study, "--data", tables)
    assert (plain["algorithm"], plain["seed"]) == ("bofrf", 0)
    other = result(study, "--data", tables, "--algorithm", "fedrf", "--seed", 7)
    assert (other["algorithm"], other["seed"]) == ("fedrf", 7)
    assert other["study_digest"] != plain["study_digest"]
    assert set(other["sites"]["ash"]["auroc"]) == {"local", "fedrf", "chosen"}


def test_settings_of_the_study_s_own_algorithm_stay_if_it_is_named_again(study, tables):
    study.write_text(STUDY + "algorithm: {name: bofrf, weighting: mcc, tau: 0.99}\n")
    report = result(study, "--data", tables, "--algorithm", "bofrf")
    assert "no tree is above tau 0.99" in report["sites"]["ash"]["choice"]["notes"][0]


def test_the_published_preset_can_be_asked_for(study, tables):
    report = result(study, "--data", tables, "--preset", "published")
    assert report["sites"]["ash"]["choice"]["reason"].startswith("best of bofrf own trees, bofrf")


def test_sites_can_be_clustered(study, tables):
    for seed, site in enumerate(("east", "middle", "west")):
        older = patients(seed + 10).assign(age=95.0, lactate=9.0)
        older.to_csv(tables / f"{site}.csv", index=False)
    report = result(study, "--data", tables, "--clusters", 2, "--distance", "manhattan")
    assert set(report["sites"]["west"]["credit"]) <= {"east", "middle", "west"}
    assert set(report["sites"]["ash"]["credit"]) <= {*SITES}


def test_sites_can_fall_into_as_many_clusters_as_there_are(study, tables):
    for seed, site in enumerate(("east", "middle", "west")):
        patients(seed + 10).assign(age=95.0, lactate=9.0).to_csv(tables / f"{site}.csv", index=False)
    assert result(study, "--data", tables, "--clusters", "auto")["clusters"] == [[*SITES], ["east", "middle", "west"]]
    for site in ("east", "middle", "west"):
        (tables / f"{site}.csv").unlink()
    answer = spinney("simulate", study, "--data", tables, *ONCE, "--clusters", "auto")
    assert "cluster: all together, because no grouping separates the sites" in answer.stdout


def test_the_pooled_forest_is_shown_when_asked_for(study, tables):
    pooled = result(study, "--data", tables, "--pooled")["sites"]["ash"]["auroc"]["pooled"]
    assert 0.6 < pooled <= 1


def test_boosted_comparators_have_columns_of_their_own(study, tables):
    report = result(study, "--data", tables, "--algorithm", "boppid")
    assert set(report["sites"]["ash"]["auroc"]) == {"local", "boppid", "chosen"}
    assert "(none in common)" in spinney("simulate", study, "--data", tables, *ONCE, "--algorithm", "local").stdout


def test_rows_of_one_patient_stay_in_one_part(study, tables):
    for seed, site in enumerate(SITES):
        table = patients(seed, 300)
        table.insert(0, "patient_id", [f"p{row // 3}" for row in range(300)])
        table.to_csv(tables / f"{site}.csv", index=False)
    report = result(study, "--data", tables)["sites"]["ash"]
    assert (report["rows"], report["patients"]) == (300, 100)


def test_parquet_files_are_read_like_csv_files(study, tables):
    expected = result(study, "--data", tables)["model_digest"]
    for site in SITES:
        pd.read_csv(tables / f"{site}.csv").to_parquet(tables / f"{site}.parquet")
        (tables / f"{site}.csv").unlink()
    assert result(study, "--data", tables)["model_digest"] == expected


def test_a_feature_that_a_site_does_not_have_is_no_obstacle(study, tables):
    patients(3).drop(columns="lactate").to_csv(tables / "elm.csv", index=False)
    assert set(result(study, "--data", tables)["sites"]) == {*SITES}


def test_a_site_that_is_too_small_is_named_and_the_others_are_shown(study, tables):
    patients(3, 30).to_csv(tables / "elm.csv", index=False)
    answer = spinney("simulate", study, "--data", tables, *ONCE)
    assert answer.exit_code == 0
    assert "elm was left out: " in answer.stdout
    assert "smallest cohort" in answer.stdout


def test_a_site_with_too_few_test_patients_shows_no_figure_but_a_note(study, tables):
    study.write_text(STUDY.replace("folds: 3}", "folds: 3, fewest_test_patients: 60}"))
    answer = spinney("simulate", study, "--data", tables, *ONCE)
    assert "ash: " in answer.stdout
    assert "too few for figures" in answer.stdout
    assert set(result(study, "--data", tables)["sites"]["ash"]["auroc"].values()) == {None}


def test_reversed_labels_are_asked_about(study, tables):
    patients(3, 300).assign(died=lambda table: 1 - table["died"]).to_csv(tables / "elm.csv", index=False)
    answer = spinney("simulate", study, "--data", tables, *ONCE)
    assert "is the label coded the other way round?" in answer.stdout


# ---------------------------------------------------------------------------------------------------------------
# What is wrong is said in one line


def test_two_sites_are_advised_to_use_a_trusted_third_party(study, tables):
    for site in SITES[2:]:
        (tables / f"{site}.csv").unlink()
    line = refused(study, "--data", tables)
    assert line == "2 sites are left and 3 are needed; two sites can only use secure_sum: trusted-third-party"
    assert set(result(study, "--data", tables, "--secure-sum", "trusted-third-party")["sites"]) == {*SITES[:2]}


@pytest.mark.parametrize("option", [["--clusters", 2], ["--distance", "manhattan"], ["--preset", "published"]])
def test_an_option_of_another_algorithm_is_refused(study, tables, option):
    line = refused(study, "--data", tables, "--algorithm", "fedrf", *option)
    assert line == f"{option[0]} belongs to the algorithm bofrf, and this is fedrf"


def test_a_distance_without_clusters_is_refused(study, tables):
    line = refused(study, "--data", tables, "--distance", "manhattan")
    assert line == "--distance is between clusters of sites: add --clusters, 2 or more"


def test_a_secure_sum_that_the_study_s_other_words_forbid_is_refused(study, tables):
    study.write_text(STUDY + "privacy: {secure_sum: trusted-third-party, fewest_scoring_sites: 2}\n")
    line = refused(study, "--data", tables, "--secure-sum", "masked")
    assert line.startswith("masked needs fewest_scoring_sites of at least 3")
    assert "\n" not in line


def test_a_table_without_the_label_is_named(study, tables):
    patients(3).drop(columns="died").to_csv(tables / "elm.csv", index=False)
    assert refused(study, "--data", tables).startswith("elm: label died is a column: add the column")


def test_rows_that_belong_to_nobody_are_refused_with_their_number(study, tables):
    table = patients(3)
    table.insert(0, "patient", [None] * 5 + [f"p{row}" for row in range(135)])
    table.to_csv(tables / "elm.csv", index=False)
    assert refused(study, "--data", tables).startswith("elm: patient is known (5 failed): say whose rows these are")


def test_a_mistake_in_the_study_is_said_with_its_line(study, tables):
    study.write_text(STUDY.replace("trees: 5", "trees: many"))
    assert "study.yaml:7 forest.trees: needs a whole number" in refused(study, "--data", tables)


def test_a_folder_without_tables_is_refused(study, tmp_path):
    assert "holds no CSV or Parquet file" in refused(study, "--data", tmp_path)


@pytest.mark.parametrize("option", [["--workers", 0], ["--seed", -1], ["--clusters", 0], ["--algorithm", "magic"]])
def test_an_impossible_value_is_wrong_usage(study, tables, option):
    assert spinney("simulate", study, "--data", tables, *option).exit_code == 2


def test_the_options_offer_what_the_algorithms_are(study):
    from spinney.algorithms.bofrf import Bofrf
    from spinney.flows.cli.simulate import ALGORITHMS, DISTANCES, SECURE_SUMS
    from spinney.plugins import ALGORITHMS as KNOWN
    from spinney.study.settings import Privacy

    assert set(ALGORITHMS) == set(KNOWN)
    assert Bofrf.model_json_schema()["properties"]["distance"]["enum"] == DISTANCES
    assert Privacy.model_json_schema()["properties"]["secure_sum"]["enum"] == SECURE_SUMS
    assert read_study(study).privacy.secure_sum in SECURE_SUMS


def test_a_feature_that_no_site_has_is_said(study, tables):
    study.write_text(study.read_text().replace("features:", "features:\n  - {name: nowhere, kind: binary}", 1))
    answer = spinney("simulate", study, "--data", tables, *ONCE)
    assert answer.exit_code == 0
    assert "nowhere is a column at no site" in answer.stderr
