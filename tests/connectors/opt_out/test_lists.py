"""What every list has in common."""

from __future__ import annotations

from pathlib import Path

from spinney.connectors.opt_out.file_list import FileList


def test_a_list_is_known_again_while_nobody_changes_where_it_is() -> None:
    one = FileList(path=Path("a.txt"))
    assert one.key == FileList(path=Path("a.txt"), may_be_empty=True).key
    assert one.key != FileList(path=Path("b.txt")).key
