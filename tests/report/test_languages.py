"""What pages say in French: scores, quantities of ledgers, titles of charts, numbers."""

from __future__ import annotations

import pytest

from biobench.report.details.ledgers import ledger_facts, ledger_table
from biobench.report.languages.labels import metric_in, rounded, whole
from biobench.report.languages.pretraining_fr import in_french
from biobench.report.literature.beside import NAMES
from leaderboard.words import words
from tests.helpers.view_make import save_pretraining

SAME = {"attention", "corpus", "dropout", "FLOPs", "phase", "phases", "tokens", "torch"}
"""Words that both languages have."""


def test_every_score_has_a_name_in_both_languages():
    for metric in NAMES:
        assert "_" not in metric_in(metric, words("en"))
        assert "_" not in metric_in(metric, words("fr"))
    assert metric_in("accuracy", words("fr")) == "exactitude"
    assert metric_in("macro_f1", words("en")) == "Macro F1"
    assert metric_in("of_a_plug_in", words("fr")) == "of_a_plug_in"


def test_every_quantity_of_a_ledger_has_a_french_name(tmp_path):
    save_pretraining(tmp_path, steps=4)
    first, second = (tmp_path / name / "ledger.json" for name in ("detour", "twin"))
    facts = ledger_facts(first)
    names = {name for name, *_ in ledger_table(first, second).rows} | {name for name, _ in facts.facts}
    names |= {name for phase in facts.phases for name, _ in phase}
    bare = {name.partition("phase ")[2].partition(" ")[2] or name for name in names}
    assert {name for name in bare if in_french(name) == name} <= SAME
    assert in_french("phase 2 peak rate") == "phase 2 : taux maximal"


@pytest.mark.parametrize(
    ("english", "french"),
    [
        ("matched", "appariés"),
        ("not matched: tokenizer, phase 1 steps", "non appariés : tokeniseur, phase 1 : pas"),
        (
            "matched: a noise pair (training seeds differ: 1 and 2)",
            "appariés : une paire de bruit (graines d'entraînement différentes : 1 et 2)",
        ),
        ("1 − CKA (debiased), 200 texts, mean states", "1 − CKA (débiaisé), 200 textes, états : mean"),
        ("a name of one's own", "a name of one's own"),
    ],
)
def test_verdicts_and_titles(english, french):
    assert in_french(english) == french


def test_large_numbers():
    assert (whole(22_565_376, words("en")), whole(22_565_376, words("fr"))) == ("22,565,376", "22\u202f565\u202f376")
    shown = [(rounded(value, words("en")), rounded(value, words("fr"))) for value in (395e6, 5_063.0, 156.0)]
    assert shown == [("395M", "395\u202fM"), ("5.1K", "5,1\u202fk"), ("156", "156")]
