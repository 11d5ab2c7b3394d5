"""Two runs side by side: noise is not news, and what got worse has a name."""

from __future__ import annotations

import json

import pytest

from benchmarks import compare, harness
from benchmarks.harness import Figure, Measured


@pytest.fixture
def run(tmp_path):
    """Figures as the harness writes them."""

    def written(name, *figures, quick=False, **changes):
        path = tmp_path / f"{name}.json"
        words = ["--json", str(path), *(["--quick"] if quick else [])]
        harness.command("made", "Made up.", lambda _: Measured(figures, "told"), arguments=words)
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
        return path

    return written


def compared(old, new, *more):
    return compare.main([str(old), str(new), *more])


def test_what_got_slower_beyond_the_noise_is_named(run, capsys):
    old = run("old", Figure("round/wall", "s", (10.0, 10.2, 10.4)), Figure("round/peak", "MiB", (300, 301, 302)))
    new = run("new", Figure("round/wall", "s", (12.0, 12.1, 12.2)), Figure("round/peak", "MiB", (301, 302, 303)))
    assert compared(old, new) == 1
    said = capsys.readouterr().out
    assert "| made/round/wall | 10.2 (10 to 10.4) | 12.1 (12 to 12.2) | s | +19% |" in said
    assert said.endswith("1 worse, 0 better, 1 alike within the noise.\n")


def test_a_difference_within_the_spread_of_either_run_is_noise(run):
    quiet, busy = Figure("wall", "s", (10.0, 10.1, 10.2)), Figure("wall", "s", (10.5, 12.0, 14.0))
    assert compared(run("old", quiet), run("new", busy)) == 0
    assert compared(run("older", busy), run("newer", quiet)) == 0


def test_a_small_difference_is_no_news_however_steady_the_runs(run):
    assert compared(run("old", Figure("wall", "s", (10, 10))), run("new", Figure("wall", "s", (10.4, 10.4)))) == 0


def test_of_a_single_run_the_noise_is_not_known(run):
    assert compared(run("old", Figure("wall", "s", (10,))), run("new", Figure("wall", "s", (11.5,)))) == 0
    assert compared(run("older", Figure("wall", "s", (10,))), run("newer", Figure("wall", "s", (12.5,)))) == 1


def test_bytes_are_counted_and_not_measured(run):
    assert compared(run("old", Figure("sent", "B", (1000,))), run("new", Figure("sent", "B", (1100,)))) == 1


@pytest.mark.parametrize(("unit", "old", "new"), [("AUROC", 0.90, 0.89), ("/s", 1000, 700)])
def test_of_some_figures_more_is_better(run, unit, old, new):
    high, low = Figure("it", unit, (old,), "more"), Figure("it", unit, (new,), "more")
    assert compared(run("old", high), run("new", low)) == 1
    assert compared(run("older", low), run("newer", high)) == 0


def test_what_got_better_and_what_is_missing_is_told(run, capsys):
    old = run("old", Figure("wall", "s", (10, 10.1)), Figure("flower/wall", "s", (30, 31)))
    new = run("new", Figure("wall", "s", (5, 5.1)), Figure("flare/wall", "s", (20, 21)))
    assert compared(old, new) == 0
    said = capsys.readouterr().out
    assert "| made/wall | 10.1 (10 to 10.1) | 5.05 (5 to 5.1) | s | -50% |" in said
    assert "Missing in the new run: made/flower/wall" in said
    assert "1 figures are new." in said


def test_quick_runs_are_not_compared_with_whole_ones(run, capsys):
    old, new = run("old", Figure("wall", "s", (1,))), run("new", Figure("wall", "s", (9,)), quick=True)
    assert compared(old, new) == 2
    assert "one is a quick run" in capsys.readouterr().err
    assert compared(old, new, "--anyway") == 1


def test_runs_of_different_machines_are_not_compared(run, capsys):
    old, new = run("old", Figure("wall", "s", (1,))), run("new", Figure("wall", "s", (9,)), hardware="an abacus")
    assert compared(old, new) == 2
    assert "different machines" in capsys.readouterr().err


def test_all_parts_together_are_read_like_one(run, tmp_path):
    old, new = run("old", Figure("wall", "s", (1, 1))), run("new", Figure("wall", "s", (2, 2)))
    both = []
    for path in (old, new):
        one = json.loads(path.read_text())
        both.append(tmp_path / f"all-{path.name}")
        both[-1].write_text(json.dumps({**one, "parts": {"made": one}}))
    assert compared(*both) == 1


@pytest.mark.parametrize("content", ["", "{}", '{"parts": []}', "[1]", '{"part": "x", "figures": [{"name": "y"}]}'])
def test_what_is_no_result_is_refused(run, tmp_path, capsys, content):
    strange = tmp_path / "strange.json"
    strange.write_text(content)
    with pytest.raises(SystemExit) as refused:
        compared(run("old", Figure("wall", "s", (1,))), strange)
    assert refused.value.code == 2
    assert "holds no result of a benchmark" in capsys.readouterr().err
