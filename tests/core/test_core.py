"""What both packages share: files that are whole or as before, words, one line of an error, import
names, progress.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from biobench import __main__
from biobench.core.files import (
    cannot_write,
    temporary_file,
    write_atomic,
    writing,
)
from biobench.core.packages import check_ours
from biobench.core.text import first_line
from biobench.core.word_runs import runs, words
from biobench.data.overlap import overlap
from biobench.errors import StoreError, escaped, shown_json
from biobench.schema.document import Document
from trainer.corpus.cleaning import Excluded


@pytest.mark.parametrize(
    ("number", "what", "hint"),
    [
        (errno.ENOSPC, "the disk is full", "free space"),
        (errno.EROFS, "cannot be written: Read-only file system", "check the folder's permissions"),
        (errno.ENOTDIR, "cannot be written: Not a directory", "check the path"),
    ],
)
def test_a_refused_write_says_why_and_what_helps_there(number: int, what: str, hint: str) -> None:
    said = cannot_write(Path("run/file"), OSError(number, os.strerror(number)), "--here")
    assert (said.what, said.hint, said.file) == (
        what,
        f"{hint}, or choose another --here",
        "run/file",
    )


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), RuntimeError("no file of ours"), KeyboardInterrupt()]
)
def test_what_fails_while_a_file_is_written_leaves_the_old_one_alone(
    tmp_path: Path, error: BaseException
) -> None:
    file = tmp_path / "below" / "state.json"
    write_atomic(file, b"old")

    def write() -> None:
        with temporary_file(file) as stream:
            stream.write(b"half of the n")
            raise error

    with pytest.raises(type(error)):
        write()
    assert [(p.name, p.read_bytes()) for p in file.parent.iterdir()] == [("state.json", b"old")]


@pytest.mark.parametrize(
    ("error", "limit", "line"),
    [
        (ValueError("\n\n  one\ntwo"), None, "one"),
        (ValueError("abcdef"), 3, "abc"),
        (KeyError(), None, "KeyError"),
        (ValueError(" \n "), None, "ValueError"),
    ],
)
def test_an_error_in_one_line(error: Exception, limit: int | None, line: str) -> None:
    assert first_line(error, limit) == line


def test_runs_of_words_do_not_see_case_ligatures_and_punctuation() -> None:
    assert words("L'Œdème ﬁbreux, É") == ["l", "œdème", "fibreux", "é"]
    assert runs(words("a b c d"), 3).tolist() == runs(words("A, b. (C) d!"), 3).tolist()
    assert len(runs(["a", "b"], 3)) == 0
    assert len(set(runs(["a", "b", "a", "c"], 1).tolist())) == 3


@pytest.mark.parametrize("shared", [12, 13])
def test_what_is_counted_and_what_is_kept_out_are_the_same_runs(shared: int) -> None:
    """The measurement of contamination and the exclusion from a corpus agree on the text at the
    limit.
    """
    phrase = " ".join(f"wörd{i}" for i in range(shared))
    document = Document(id="d", group="d", text=f"Before {phrase} after it.", split="test")
    splits = {"test": [document], "validation": []}
    corpus = f"Other text: {phrase.upper()}; and more"
    found = overlap([corpus], {"task": splits})[0]["task", "test"]
    assert (found.touched, Excluded([document.text]).why(corpus)) == (
        (1, "overlap") if shared == 13 else (0, None)
    )


def test_a_package_of_another_distribution_is_refused(tmp_path: Path) -> None:
    check_ours("trainer")
    other = tmp_path / "trainer"
    other.mkdir()
    (other / "__init__.py").write_text("raise SystemExit('imported')")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from biobench.cli.main import "
        f"main; main()"
    )
    for command in (["ledger", "a", "b"], ["study", "a"], ["analyze", "stability", "m"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *command], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert (
            f"the import name 'trainer' belongs to another package here ({other / '__init__.py'})"
            in done.stderr
        )


def test_a_librarys_words_for_a_full_disk_are_the_systems_own(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the disk is full"), writing(tmp_path):
        raise RuntimeError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        )
    with pytest.raises(RuntimeError, match="other"), writing(tmp_path):
        raise RuntimeError("other")


def test_what_steers_a_terminal_is_escaped_in_json_and_lines_and_nothing_else() -> None:
    value = {"né": ["a\u202eb", "\x1b[2J", "\x9b", "\U000e0041", "œdème β"]}
    shown = shown_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(shown) == value
    assert shown.replace("\n", "").isprintable()
    assert "œdème β" in shown
    assert escaped("a  b\x1b[2J\u202ec") == "a  b\\x1b[2J\\u202ec"


def test_an_interrupt_while_the_command_line_is_imported_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupting:
        @property
        def main(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "biobench.cli.main", Interrupting())
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 130
