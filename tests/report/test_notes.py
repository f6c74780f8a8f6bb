"""Notes in two languages: every form has a French one with the same fields, and the same numbers come out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from biobench.comparison.compare import compare
from biobench.report.entrants import _PREFERRED
from biobench.report.languages.notes import Note, note
from biobench.report.languages.notes_fr import FORMS, in_french
from biobench.report.literature.beside import NAMES
from biobench.report.table import build
from biobench.schema.contamination import Contamination
from tests.helpers.report_make import save_run, save_runs

ROOT = Path(__file__).resolve().parents[2]


def fields(form: str) -> list[tuple[str, str]]:
    return sorted((name, spec or "") for _, name, spec, _ in Formatter().parse(form) if name is not None)


def written() -> Iterator[str]:
    """The forms in the code: what is given to `note`, or kept as `form` first."""
    for path in (p for room in ("report", "comparison") for p in sorted((ROOT / "biobench" / room).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "note":
                texts = [node.args[0]]
            elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "form" for t in node.targets):
                texts = [node.value]
            else:
                continue
            yield from (t.value for t in texts if isinstance(t, ast.Constant))


def test_every_form_has_a_french_one_with_the_same_fields() -> None:
    known = {*written(), *NAMES.values(), *_PREFERRED}
    assert len(known) > 50
    assert known == set(FORMS)
    for english, french in FORMS.items():
        assert set(fields(english)) == set(fields(french)), english


def test_notes_keep_what_they_were_made_of() -> None:
    inner = note("published means come without predictions")
    made = note("{task}: {reason} ({pairs}{more})", task="gad", reason=inner, pairs=["a {b}", "c"], more="")
    assert isinstance(made, str)
    assert made == "gad: published means come without predictions (a {b}; c)"
    assert in_french(made) == "gad : les moyennes publiées viennent sans prédictions (a {b}; c)"
    assert in_french("an error's own words") == "an error's own words"


@pytest.fixture
def noisy(tmp_path: Path) -> Path:
    """A folder whose report has much to say."""
    seen = Contamination.model_validate(
        {
            "corpus": "web",
            "corpus_hash": "c",
            "base": "other",
            "test": {
                "documents": 50,
                "exact": 1,
                "touched": 2,
                "seen": 2,
                "short": 0,
                "ngrams": 100,
                "ngrams_seen": 3,
            },
        }
    )
    save_runs(tmp_path, "a", "bc5cdr", {42: 0.5, 43: 0.5})
    save_runs(tmp_path, "b", "bc5cdr", {42: 0.5, 43: 0.6, 44: 0.7}, windows={"truncated_documents": 2, "lost_gold": 3})
    save_run(tmp_path, "a", "gad", 42, 0.7, contamination=seen)
    save_run(tmp_path, "b", "gad", 43, 0.7, precision="bf16")
    save_run(tmp_path, "b", "gad", 43, 0.7, precision="fp32")
    save_run(tmp_path, "a", "anatem", 42, 0.7)
    return tmp_path


def test_a_report_and_a_comparison_say_the_same_in_french(noisy: Path) -> None:
    said = [*build(noisy, "macro").notes, *build(noisy, "paper").notes]
    said += compare("a", "b", results_dir=noisy).notes
    assert len(said) > 15
    for text in said:
        assert isinstance(text, Note), text
        french = in_french(text)
        assert french != text
        numbers = [re.findall(r"\d+(?:[.,]\d+)?", one) for one in (french.replace("\u202f", ","), text)]
        plain = [sorted(n.replace(",", ".") for n in each) for each in numbers]
        assert plain[0] == plain[1]
