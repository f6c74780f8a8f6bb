"""Names and messages as a reader sees them: short, never two the same, and nothing of where the server's files lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.report.charts import MOST_LETTERS
from biobench.report.escape import LONGEST
from biobench.report.names import labels, shorten, without_revisions
from biobench.report.printers import plain_note

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


def test_a_revision_in_brackets_or_a_text_is_cut_and_other_digits_are_not():
    assert shorten(f"a@{FIRST} [limit 16] beats b@{SECOND}.") == "a@0123456 [limit 16] beats b@fedcba9."
    assert shorten(f"sha256 a@{KEY}") == f"sha256 a@{KEY}", "64 digits are no revision"


def test_hostile_and_long_names_stay_one_short_line():
    name = "x\u202egnp.exe\n<script>" + 200 * "y"
    (label,) = labels([name]).values()
    assert not {"\u202e", "\n"} & set(label)
    assert len(label) <= MOST_LETTERS
    assert labels([]) == {}


@pytest.mark.parametrize("depth", [0, 1, 5, 50])
@pytest.mark.parametrize("name", ["a.json", f"{KEY}.json", f"{KEY}-{30 * 'f'}.json"])
def test_the_name_of_a_file_stays_whole(depth, name):
    word = str(Path("/srv", *[20 * "d"] * depth, name))
    note = plain_note(f"{word}: not JSON")
    assert note.endswith(f"/{name}: not JSON")
    assert len(note.split()[0]) <= LONGEST
