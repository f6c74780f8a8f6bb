"""Names and messages as a reader sees them: short, never two the same, and nothing of where the server's files lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.report.charts import MOST_LETTERS
from biobench.report.escape import LONGEST
from biobench.report.names import MOST_IN_CELL, in_cells, labels, shorten, without_revisions
from biobench.report.render import plain_note
from leaderboard.folder import inside
from leaderboard.launch import PRETRAINING_VARIABLE, PUBLIC_VARIABLE, RESULTS_VARIABLE
from leaderboard.words import spoken
from tests.helpers.app_make import board, open_app
from tests.helpers.report_make import save_runs

FIRST, SECOND = "0123456789abcdef0123456789abcdef01234567", "fedcba9876543210fedcba9876543210fedcba98"
KEY = 64 * "e"


def test_owner_and_revision_are_left_out_where_nothing_else_is_called_so():
    names = [f"almanach/camembert-bio@{FIRST}", "org/encoder"]
    assert labels(names) == {names[0]: "camembert-bio", names[1]: "encoder"}
    assert without_revisions(names) == {names[0]: "almanach/camembert-bio", names[1]: "org/encoder"}


def test_what_tells_two_models_apart_stays():
    owners = ["one/encoder", "two/encoder"]
    assert labels(owners) == {name: name for name in owners}
    revisions = [f"org/encoder@{FIRST}", f"org/encoder@{SECOND}"]
    assert list(labels(revisions).values()) == ["org/encoder@0123456", "org/encoder@fedcba9"]
    assert list(without_revisions(revisions).values()) == ["org/encoder@0123456", "org/encoder@fedcba9"]
    three = ["one/encoder", "two/encoder", f"two/encoder@{FIRST}"]
    assert len(set(labels(three).values())) == 3


def test_a_name_too_long_for_its_cell_keeps_both_ends_and_never_hides_a_difference():
    start, end = 30 * "a", 30 * "z"
    ends = [f"org/{start}{end}-clm", f"org/{start}{end}-mlm"]
    assert [len(shown) <= MOST_IN_CELL for shown in in_cells(ends).values()] == [True, True]
    assert len(set(in_cells(ends).values())) == 2
    middles = [f"org/{start}-clm-{end}", f"org/{start}-mlm-{end}"]
    assert list(in_cells(middles).values()) == middles, "they differ where they would be cut"
    assert in_cells(["short"]) == {"short": "short"}


def test_readers_of_a_public_page_are_told_no_command_of_the_server(monkeypatch):
    command = "anatem: no gate verdict on the data of its runs; `biobench tasks gate anatem` gives one"
    alone = "`biobench rescore` computes it"
    assert spoken(command) == command
    monkeypatch.setenv(PUBLIC_VARIABLE, "1")
    assert spoken(command) == "anatem: no gate verdict on the data of its runs"
    assert spoken(f"gad: no macro F1; {alone}; left out") == "gad: no macro F1; left out"
    assert spoken("gad: cut at 512 tokens; 3 documents") == "gad: cut at 512 tokens; 3 documents"


def test_a_revision_in_brackets_or_a_text_is_cut_and_other_digits_are_not():
    assert shorten(f"a@{FIRST} [limit 16] beats b@{SECOND}.") == "a@0123456 [limit 16] beats b@fedcba9."
    assert shorten(f"sha256 a@{KEY}") == f"sha256 a@{KEY}", "64 digits are no revision"


def test_hostile_and_long_names_stay_one_short_line():
    name = "x\u202egnp.exe\n<script>" + 200 * "y"
    (label,) = labels([name]).values()
    assert not {"\u202e", "\n"} & set(label)
    assert len(label) <= MOST_LETTERS
    assert labels([]) == {}


def test_messages_do_not_tell_where_the_folder_lies(monkeypatch, tmp_path):
    folder = tmp_path / "srv" / "results"
    folder.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(folder)
    monkeypatch.setenv(RESULTS_VARIABLE, str(link))
    for root in (link, folder):
        assert inside(f"{root}/runs/gad/a.json: not JSON; delete {root}/runs/gad/a.json") == (
            "runs/gad/a.json: not JSON; delete runs/gad/a.json"
        )
    monkeypatch.setenv(PRETRAINING_VARIABLE, str(tmp_path / "training"))
    assert inside(f"{tmp_path}/training/detour/metrics.jsonl:3: no loss") == "detour/metrics.jsonl:3: no loss"
    assert inside(f"{tmp_path}/elsewhere/a.json") == f"{tmp_path}/elsewhere/a.json", "outside of the folder"


@pytest.mark.parametrize("depth", [0, 1, 5, 50])
@pytest.mark.parametrize("name", ["a.json", f"{KEY}.json", f"{KEY}-{30 * 'f'}.json"])
def test_the_name_of_a_file_stays_whole(depth, name):
    word = str(Path("/srv", *[20 * "d"] * depth, name))
    note = plain_note(f"{word}: not JSON")
    assert note.endswith(f"/{name}: not JSON")
    assert len(note.split()[0]) <= LONGEST


@pytest.mark.parametrize("word", [500 * "x", "/" + 500 * "x", 250 * "x" + "/" + 250 * "x", 500 * "/"])
def test_a_long_word_is_cut_whatever_it_is(word):
    assert len(plain_note(word)) <= LONGEST


def test_scores_stand_before_what_a_screen_may_leave_out(monkeypatch, tmp_path):
    for task in ("bc5cdr", "gad"):
        save_runs(tmp_path, "one", task, {42: 0.7, 43: 0.71})
        save_runs(tmp_path, "two", task, {42: 0.5, 43: 0.51})
    columns = list(board(open_app(monkeypatch, tmp_path, suite="en", sources="run")).columns)
    assert columns == ["rank", "model", "mean", "bc5cdr", "gad", "parameters", "window", "tokens/s"]
