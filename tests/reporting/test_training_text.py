"""The footnote on a model's training text, and the mark of a score on test documents that were in
it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.reporting.footnotes import MARK, marked
from biobench.reporting.frame import build
from biobench.schema.contamination import Contamination, SplitOverlap
from tests.helpers.report_make import save_runs

NONE = SplitOverlap(documents=10, exact=0, touched=0, ngrams=200, ngrams_seen=0, short=0, seen=0)
TWO = NONE.model_copy(update={"exact": 1, "ngrams_seen": 30, "seen": 2})


@pytest.mark.parametrize(
    ("test", "excluded", "words"),
    [
        (
            None,
            True,
            "m on gad: validation and test documents were excluded from its training text",
        ),
        (None, False, "m on gad: its training text 'web' has not been compared with the test"),
        (NONE, True, "none of 10 test documents was found in its training text 'web', from which"),
        (NONE, False, "in its training text 'web'; the text of its base b is not known"),
        (TWO, False, f"{MARK} m on gad: 2 of 10 test documents (20.0%) share 13 words in a row"),
        (TWO, False, "'web', 1 of them verbatim; 15.0% of all runs of 13 words; the text of its b"),
    ],
)
def test_what_is_known_of_the_training_text(
    test: SplitOverlap | None, excluded: bool, words: str, tmp_path: Path
) -> None:
    known = Contamination(
        corpus="web", corpus_hash="0" * 64, base="b", excluded=excluded, test=test
    )
    save_runs(tmp_path, "m", "gad", {42: 0.5}, contamination=known)
    report = build(tmp_path, "macro", sources=("run",))
    (note,) = [note for note in report.notes if "training text" in note]
    assert words in note
    assert marked(report.rows[0].contamination) == note.startswith(MARK) == (test == TWO)
