"""The quick reader of YAML and the one that says what is wrong agree on everything."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from biobench.errors import SpecError
from biobench.schema import yaml12

ROOT = Path(__file__).resolve().parents[2]
FILES = [*ROOT.glob("tasks/**/*.yaml"), *ROOT.glob("trainer/**/*.yaml")]
TEXTS = [file.read_text(encoding="utf-8") for file in sorted(FILES)]
SIGNS = list("\t\n :-#'\"{}[],&*!|>%@`?\\abc0é\u2028\x07\ufeff\x85")


def read(text: str) -> Any:
    try:
        document = yaml12.parse(text, "spec.yaml")
    except SpecError as error:
        return str(error), error.hint
    return document.data, document.lines


def with_and_without_the_quick_reader(text: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    answers = [read(text)]
    with monkeypatch.context() as patch:
        patch.setattr(yaml12, "_quick_node", lambda text: None)
        answers.append(read(text))
    return answers


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML has no libyaml here")
def test_shipped_files_are_read_quickly_and_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [yaml12._quick_node(text) is not None for text in TEXTS]
    assert sum(quick) > 0.8 * len(TEXTS) > 40
    for text in TEXTS:
        first, second = with_and_without_the_quick_reader(text, monkeypatch)
        assert first == second


def test_changed_files_are_read_alike_or_refused_in_the_same_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(0)
    for _ in range(600):
        signs = list(chance.choice(TEXTS)[: chance.randint(5, 500)])
        for _ in range(chance.randint(1, 4)):
            signs.insert(chance.randrange(len(signs) + 1), chance.choice(SIGNS))
        text = "".join(signs)
        first, second = with_and_without_the_quick_reader(text, monkeypatch)
        assert first == second, text
