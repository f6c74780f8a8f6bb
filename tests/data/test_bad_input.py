"""Every malformed spec or data file gives one line that names the place, and a hint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.data.readers.files import decoded
from biobench.errors import BioBenchError

BAD = Path(__file__).resolve().parent.parent / "fixtures" / "bad"
CASES: list[dict[str, Any]] = yaml.safe_load((BAD / "cases.yaml").read_text(encoding="utf-8"))


def test_every_bad_spec_is_in_the_table() -> None:
    assert {case["spec"] for case in CASES} == {p.name for p in BAD.glob("*.yaml")} - {"cases.yaml"}
    assert len(CASES) >= 20


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_another_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(BioBenchError, match=r"UTF-16 or UTF-32|NUL byte"):
        decoded(Path("f"), "one\ntwo".encode(encoding))


@pytest.mark.parametrize("case", CASES, ids=lambda c: str(c["spec"]))
def test_one_line_that_names_the_place(case: dict[str, Any]) -> None:
    with pytest.raises(BioBenchError) as caught:
        load_data(load_task(BAD / case["spec"]), BAD / "data")
    error = caught.value
    text = str(error)
    assert "\n" not in text
    assert error.file is not None
    assert error.file.endswith(case["at"])
    if case["line"] is not None:
        assert error.line == case["line"], text
        assert text.startswith(f"{error.file}:{error.line}: ")
    for word in case["words"]:
        assert word in text
    assert error.hint
    assert "\n" not in error.hint
