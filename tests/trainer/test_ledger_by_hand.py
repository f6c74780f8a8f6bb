"""What a run writes down, against numbers worked out from the recipe and the corpus alone."""

from __future__ import annotations

import pytest

from tests.helpers.trainer_make import train
from trainer.ledger import Ledger
from trainer.order import draw, roll
from trainer.train.progress import read_metrics

STEP = 8 * 48
"""Tokens a step."""
OVERRIDES = [
    "phases.0.schedule={shape: linear, warmup: 1000, cooldown: 1536, final: 0.5, peak: 0.5}",
    "phases.0.isolate_documents=true",
    "phases.0.freeze={layers: '0,2'}",
    "phases.1.data=restart",
    "phases.1.schedule={shape: 1-sqrt, final: 0.1, peak: 2}",
    "phases.1.masking={rate: 0.3, rule: mask}",
    "optimizer.gradient_clip=0.25",
    "corpus.sources=[{id: a, embedded: {documents: 100}}, {id: b, embedded: {documents: 60, seed: 8}}]",
    "corpus.exclude={files: [kept_out.txt], ngram: 9}",
]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory, small: list[str]) -> Ledger:
    root = tmp_path_factory.mktemp("by_hand")
    (root / "kept_out.txt").write_text("a text that is not in the corpus")
    held = train(root / "run", [*small, *OVERRIDES, f"corpus.root={root}"]).ledger
    lines = [line for line in read_metrics(root / "run" / "metrics.jsonl") if line["event"] == "train"]
    assert [line["tokens"] for line in lines] == [STEP * n for n in range(1, 21)]
    for phase, last in zip(held.phases, (lines[11], lines[19]), strict=True):
        assert (phase.train_loss, phase.final_rate) == (last["loss"], pytest.approx(last["learning_rate"], rel=1e-12))
        assert phase.targets == sum(line["targets"] for line in lines if line["phase"] == phase.name)
    return held


def test_rates_samples_tokens_and_targets(ledger: Ledger) -> None:
    """Peak 3e-3 x 0.5 over 12 steps, then 3e-3 x 2 over 8."""
    detour, decay = ledger.phases
    fallen = (11 * STEP - (12 * STEP - 1536)) / 1536
    assert (detour.peak_rate, detour.final_rate) == pytest.approx((1.5e-3, 1.5e-3 * (1 - 0.5 * fallen)))
    assert (decay.peak_rate, decay.final_rate) == pytest.approx((6e-3, 6e-3 * (0.1 + 0.9 * (1 - (7 / 8) ** 0.5))))
    windows = ledger.corpus.windows
    for phase, steps in ((detour, 12), (decay, 8)):
        assert (phase.steps, phase.tokens) == (steps, steps * STEP)
        assert (phase.first_sample, phase.last_sample) == (0, 8 * steps - 1)
        assert phase.epochs == round(8 * steps / windows, 4)
        rolled = ""
        for step in range(steps):
            rolled = roll(rolled, draw(8 * step, 8, windows=windows, seed=42)[0])
        assert phase.order_hash == rolled
    assert (ledger.steps, ledger.tokens, ledger.step_tokens) == (20, 20 * STEP, STEP)
    assert 12 * 8 * 40 < detour.targets < 12 * 8 * 47, "ends of documents inside windows predict nothing"
    assert decay.targets / decay.tokens == pytest.approx(0.3, abs=0.03)


def test_what_was_asked_for(ledger: Ledger) -> None:
    names = ("name", "objective", "masking", "frozen_layers", "head", "data", "isolate_documents", "adopted_from")
    assert [[getattr(phase, name) for name in names] for phase in ledger.phases] == [
        ["detour", "clm", None, "0,2", "keep", "continue", True, None],
        ["decay", "mlm", {"rate": 0.3, "rule": "mask", "special": "protected"}, None, "keep", "restart", False, None],
    ]
    assert [list(phase.schedule.values()) for phase in ledger.phases] == [
        ["linear", 1000, 1536, 0.5, 0.5],
        ["1-sqrt", 0, None, 0.1, 2.0],
    ]
    rates = {"learning_rate": 3e-3, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-6, "weight_decay": 1e-5}
    assert ledger.optimizer == rates | {"gradient_clip": 0.25}
    assert (ledger.sequence_length, ledger.batch_sequences) == (48, 8)
    assert ledger.seeds == {"data": 42, "training": 17, "init": 17}
    assert (ledger.precision, ledger.dropout, ledger.distributed, ledger.world_sizes) == ("fp32", 0.0, "none", (1,))


def test_what_the_guard_and_the_corpus_gave(ledger: Ledger) -> None:
    detour, decay = ledger.phases
    assert detour.leak == 0.0 < decay.leak
    # 3 layers, the first global; half of local_attention=16 to each side
    assert detour.reach == {"full_attention": (-1, 0), "sliding_attention": (8, 0)}
    assert decay.reach == {"full_attention": (-1, -1), "sliding_attention": (8, 8)}
    assert ledger.corpus.sources == pytest.approx({"a": 0.625, "b": 0.375}, abs=0.03)
    assert ledger.corpus.tokens == ledger.corpus.windows * 48
    assert (ledger.corpus.excluded_documents, len(ledger.corpus.exclusion_hash)) == (1, 64)
    assert (ledger.base.source, ledger.base.architecture) == ("fresh weights", "ModernBertForMaskedLM")


def test_flops(ledger: Ledger) -> None:
    """Width 32, inner 32, 3 layers, vocabulary 500; layers 0 and 2 frozen in the detour."""
    layer = 32 * 96 + 32 * 32 + 32 * 64 + 32 * 32  # query, key, value; output; both halves of the gated unit; output
    head = 32 * 32 + 32 * 500
    detour = 2 * (2 * 3 * layer + layer) + 12 * 32 * (49 / 2 + 9 + 9) + 6 * head
    decay = 6 * 3 * layer + 12 * 32 * (48 + 17 + 17) + 6 * 0.3 * head
    assert [p.flops for p in ledger.phases] == pytest.approx([detour * 12 * STEP, decay * 8 * STEP])
    assert ledger.flops == pytest.approx(sum(p.flops for p in ledger.phases))
