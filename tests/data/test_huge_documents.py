"""A huge document, a line without end and very many empty documents take a bounded multiple of their file's memory."""

from __future__ import annotations

import pytest

from tests.benchmarks.reader_memory import CASES, MOST, measure
from tests.helpers.layouts import LAYOUTS


@pytest.mark.parametrize("format", LAYOUTS)
def test_a_line_of_a_million_characters(format: str) -> None:
    """Above the start, 60 MiB at most: readers that kept a Python object for each character took over 100."""
    answer = measure(format, "line", 0.01)
    assert answer["ended"] == "9 documents"
    assert int(str(answer["mib"])) <= 60


@pytest.mark.parametrize("format", LAYOUTS)
def test_very_many_empty_documents_or_blank_lines_are_read_or_refused(format: str) -> None:
    ends = {case: str(measure(format, case, 0.005)["ended"]) for case in ("empty", "blank")}
    assert all(end.startswith("refused: ") or end.endswith(" documents") for end in ends.values())


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("format", LAYOUTS)
def test_at_full_size(format: str, case: str) -> None:
    answer = measure(format, case, 1.0)
    assert (
        str(answer["ended"]).startswith("refused: ") or case in ("empty", "blank") or answer["ended"] == "9 documents"
    )
    assert int(str(answer["mib"])) <= MOST
