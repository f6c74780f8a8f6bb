"""The benchmark against the HF Trainer: contenders do the same work, ratios and fits are what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import TrainingError, UsageError
from tests.benchmarks import hf_trainer, speed_against
from tests.benchmarks.speed_against import (
    OURS,
    Figures,
    Work,
    best_flags,
    compare_speed,
    contenders,
    measure_contender,
)
from tests.helpers.checkpoints import make_checkpoint


def work(folder: Path, **changed: Any) -> Work:
    basis = Work(str(make_checkpoint("bert", folder / "m")), "demo_ner", None, 24, 1, (1, 2), "cpu", 1)
    return replace(basis, **changed)


def test_the_contenders_do_the_same_work(tmp_path: Path) -> None:
    """Ours and the HF Trainer's best, each in this process; the scores are of the same test split."""
    for name, flags in contenders(torch.device("cpu")).items():
        if name == OURS or name.endswith("SDPA, 2 loaders"):
            flags = flags and {**flags, "dataloader_num_workers": 0}
            figures = measure_contender(name, flags, work(tmp_path / name[:2]))
            assert figures.contender == name
            assert len(figures.scores) == 2
            assert all(0 <= score <= 1 for score in figures.scores)
            assert figures.wall_seconds > 0
            assert figures.cpu_seconds > 0
            assert figures.peak_memory_bytes > 10 * 2**20


class Oracle(torch.nn.Module):
    """Predicts the labels that it is given."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))
        self.outputs = outputs

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = torch.nn.functional.one_hot(labels.clamp(min=0), self.outputs) * self.scale
        return {"loss": logits.mean(), "logits": logits}


def test_length_groups_are_scored_against_their_own_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under them the Trainer evaluates in an order of its own; what it predicts of one document is not another's."""
    task = load_task("demo_ner")
    folder = make_checkpoint("bert", tmp_path / "m")
    monkeypatch.setattr(
        hf_trainer.AutoModelForTokenClassification, "from_pretrained", lambda _, num_labels, **__: Oracle(num_labels)
    )
    flags = {"train_sampling_strategy": "group_by_length"}
    run = hf_trainer.train_peer(folder, task.spec, load_data(task, None, 24), 1, epochs=1, select=True, flags=flags)
    assert run.scores["micro_f1"] == 1.0


def test_labels_of_other_documents_are_refused() -> None:
    """Logits that stand in another order than was thought would be scored in silence."""
    sentences = object.__new__(hf_trainer._Sentences)
    sentences.rows = [{"labels": [0, -100, 1]}, {"labels": [2, 0]}]
    found = SimpleNamespace(predictions=np.arange(6).reshape(2, 3, 1), label_ids=np.array([[2, 0, -100], [0, -100, 1]]))
    assert {i: x.ravel().tolist() for i, x in sentences.in_order(found, [1, 0]).items()} == {1: [0, 1, 2], 0: [3, 4, 5]}
    with pytest.raises(TrainingError, match="in an order that is not that of its loader"):
        sentences.in_order(found, [0, 1])


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
@pytest.mark.parametrize("compiler", [None, "/usr/bin/g++"])
def test_the_peer_gets_what_a_critic_would_give_it(
    precision: str, compiler: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed_against, "resolve_precision", lambda *_: precision)
    monkeypatch.setattr(speed_against, "which", lambda _: compiler)
    known = contenders(torch.device("cpu"))
    assert ("hf-trainer bf16" in known) is (precision == "bf16")
    best = list(known.values())[-1]
    assert best is not None
    assert best["train_sampling_strategy"] == "group_by_length"
    assert (best["optim"], best["attn_implementation"]) == ("adamw_torch_fused", "sdpa")
    assert best.get("bf16", False) is (precision == "bf16")
    assert best.get("torch_compile", False) is (compiler is not None)


def test_contenders_alternate_and_ratios_are_within_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []

    def pretended(name: str, flags: Any, part: Work) -> Figures:
        turns.append(name)
        slow = 10.0 if len(turns) > 3 else 1.0  # the second round runs on a crowded machine
        factor = {OURS: 1.0, "hf-trainer defaults": 4.0, "hf-trainer bf16": 2.0}[name]
        return Figures(name, slow * factor, factor, 100, (0.5, 0.7))

    monkeypatch.setattr(speed_against, "_in_process", pretended)
    monkeypatch.setattr(speed_against, "resolve_precision", lambda *_: "bf16")
    named = ["hf-trainer defaults", "hf-trainer bf16"]
    ratios = compare_speed(work(tmp_path), 2, names=named, report=lambda turn, figures: None)
    assert turns == [OURS, *named, *named, OURS]
    assert [(r.contender, r.wall, r.cpu, r.memory) for r in ratios] == [
        (OURS, 1.0, 1.0, 1.0),
        ("hf-trainer defaults", 4.0, 4.0, 1.0),
        ("hf-trainer bf16", 2.0, 2.0, 1.0),
    ]
    assert ratios[0].score == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("seeds", "best", "as_good"),
    [
        ((42, 43, 44), "hf-trainer bf16", [True, True, True, False]),
        ((42,), None, [None, None, None, None]),  # one seed tells nothing of noise
    ],
)
def test_best_flags_are_those_of_an_equal_score(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seeds: tuple[int, ...],
    best: str | None,
    as_good: list[bool | None],
) -> None:
    """The fastest contender trains to nothing: it is named as the fastest, and not as the best flags."""
    scores = {
        OURS: (0.30, 0.34, 0.35),
        "hf-trainer defaults": (0.33, 0.31, 0.37),
        "hf-trainer bf16": (0.31, 0.32, 0.36),
        "hf-trainer bf16, length groups": (0.0, 0.03, 0.02),
    }
    seconds = dict(zip(scores, (10.0, 32.0, 19.0, 12.0), strict=True))

    def pretended(name: str, flags: Any, part: Work) -> Figures:
        return Figures(name, seconds[name], seconds[name], 100, scores[name][: len(part.seeds)])

    monkeypatch.setattr(speed_against, "_in_process", pretended)
    monkeypatch.setattr(speed_against, "resolve_precision", lambda *_: "bf16")
    ratios = compare_speed(
        work(tmp_path, seeds=seeds), 2, names=[n for n in scores if n != OURS], report=lambda turn, figures: None
    )
    assert [r.as_good for r in ratios][1:] == as_good[1:]
    equal, fastest = best_flags(ratios)
    assert (None if equal is None else equal.contender) == best
    assert fastest is not None
    assert fastest.contender == "hf-trainer bf16, length groups"
    assert fastest.difference == pytest.approx(fastest.score - ratios[0].score)


def test_another_kind_of_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="demo_topic is of type single_label"):
        compare_speed(work(tmp_path, task="demo_topic"), 1, report=lambda turn, figures: None)
