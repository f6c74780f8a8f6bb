"""Names that no file can have, and such that a terminal would take for commands: one line, whatever the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.errors import DataFormatError
from tests.helpers.cli_make import Run
from tests.helpers.report_make import save_run

COMMANDS: dict[str, tuple[str, ...]] = {
    "model": ("run", "NAME", "--task", "demo_topic"),
    "task": ("run", "dummy", "--task", "NAME"),
    "data": ("run", "dummy", "--task", "gad", "--data-dir", "NAME"),
    "against": ("run", "dummy", "--task", "demo_topic", "--against", "NAME"),
    "results": ("report", "--results-dir", "NAME"),
    "compare": ("compare", "own-encoder", "NAME"),
    "errors": ("errors", "NAME", "--task", "gad"),
    "export": ("export", "NAME"),
    "verify": ("verify-submission", ".", "--against", "NAME"),
    "recipe": ("pretrain", "NAME"),
    "ledger": ("ledger", "NAME", "NAME"),
    "new": ("tasks", "new", "NAME", "--id", "made"),
    "fetch": ("data", "fetch", "NAME"),
    "reproduce": ("reproduce", "NAME"),
    "speed": ("speed", "NAME"),
}


@pytest.mark.parametrize("what", COMMANDS)
def test_a_name_of_any_length_or_signs_is_refused_in_one_line(what: str, biobench: Run, tmp_path: Path) -> None:
    """Before, 300 letters were a traceback in 16 of these, and the signs reached the terminal in 12."""
    save_run(tmp_path / "results", "own-encoder", "gad", 42, 0.8)
    for name in ("x" * 300, "\x1b]0;title\x07\x1b[31m", "a\u202eb", "a\udc80b"):
        said = biobench(*(name if word == "NAME" else word for word in COMMANDS[what]))
        assert said.status in (1, 2), said
        printed = said.out + said.err
        assert "Traceback" not in printed
        assert not {"\x1b", "\x07", "\u202e"} & set(printed)
        if said.status == 2 and said.err:
            assert len(said.err.splitlines()) == 2
            assert said.err.splitlines()[1].startswith("hint: ")


def test_what_a_file_holds_is_shown_as_escapes() -> None:
    error = DataFormatError("label '\x1b[2Jé\u200b' is unknown", hint="see\x00 it", file="a\x1bb.tsv", line=3)
    assert str(error) == r"a\x1bb.tsv:3: label '\x1b[2Jé\u200b' is unknown"
    assert error.hint == r"see\x00 it"
    assert error.file == "a\x1bb.tsv"
