"""spinney house verify says what was read, and ends with 2 where something is damaged."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from spinney.demo.federation import Village
from spinney.flows.cli import main
from tests.federations import breast_village


def verified(village: Village, *options: str) -> Result:
    return CliRunner().invoke(main, ["house", "verify", "--site", str(village.site_file("ash")), *options])


def test_a_sound_house_is_told_so_and_a_damaged_one_what_to_do(tmp_path: Path) -> None:
    village = breast_village(tmp_path, ("ash", "birch", "cedar"))
    sound = verified(village)
    assert (sound.exit_code, sound.stdout.splitlines()[-1]) == (0, "everything is what was written")
    paper = village.home("ash") / "studies" / "breast" / "study.yaml"
    paper.write_text(paper.read_text()[:100])
    told = verified(village)
    assert told.exit_code == 2
    assert f"{paper}\n" in told.stdout
    assert "mend:  look at it and approve it again: spinney site approve STUDY" in told.stdout
    (plain,) = json.loads(verified(village, "--json").stdout)["damaged"]
    assert (plain["path"], plain["costs"]) == (str(paper), "no night of this study")
