"""What a run writes down, against numbers worked out from the recipe and the corpus alone."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from trainer import api
from trainer.ledger import Ledger, read_ledger
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
def run(tmp_path_factory: pytest.TempPathFactory, small: list[str]) -> Path:
    root = tmp_path_factory.mktemp("by_hand")
    (root / "kept_out.txt").write_text("a text that is not in the corpus")
    out = root / "run"
    api.pretrain("toy_detour", out=out, overrides=[*small, *OVERRIDES, f"corpus.root={root}"], progress="none")
    return out


@pytest.fixture
def ledger(run: Path) -> Ledger:
    return read_ledger(run)


def rates() -> list[float]:
    """Peak 3e-3 x 0.5 over 12 steps, then 3e-3 x 2 over 8."""
    first = []
    for step in range(12):
        before, after = step * STEP, (step + 1) * STEP
        over = max(0.0, (before - (12 * STEP - 1536)) / 1536)
        first.append(1.5e-3 * (after / 1000 if after <= 1000 else 1 - 0.5 * over))
    return [*first, *(6e-3 * (0.1 + 0.9 * (1 - (step / 8) ** 0.5)) for step in range(8))]


def test_rates_and_schedules(run: Path, ledger: Ledger) -> None:
    lines = [line for line in read_metrics(run / "metrics.jsonl") if line["event"] == "train"]
    assert [line["learning_rate"] for line in lines] == pytest.approx(rates(), rel=1e-12)
    detour, decay = ledger.phases
    assert (detour.peak_rate, detour.final_rate) == pytest.approx((1.5e-3, rates()[11]))
    assert detour.peak_rate == 1.5e-3 > rates()[0], "not the first step's, which still warms up"
    assert (decay.peak_rate, decay.final_rate) == pytest.approx((6e-3, rates()[19]))
    assert detour.schedule == {"shape": "linear", "warmup": 1000, "cooldown": 1536, "final": 0.5, "peak": 0.5}
    assert decay.schedule == {"shape": "1-sqrt", "warmup": 0, "cooldown": None, "final": 0.1, "peak": 2.0}


def test_samples_tokens_and_targets(run: Path, ledger: Ledger) -> None:
    detour, decay = ledger.phases
    windows = ledger.corpus.windows
    assert windows > 96, "no window is read twice in a phase"
    assert [(p.steps, p.tokens, p.first_sample, p.last_sample) for p in ledger.phases] == [
        (12, 12 * STEP, 0, 95),
        (8, 8 * STEP, 0, 63),
    ]
    assert (ledger.steps, ledger.tokens, ledger.step_tokens) == (20, 20 * STEP, STEP)
    assert [p.epochs for p in ledger.phases] == [round(96 / windows, 4), round(64 / windows, 4)]
    key = np.frombuffer(hashlib.blake2b(b"windows|42|0", digest_size=16).digest(), dtype="<u4")
    order = np.random.RandomState(key.astype(np.uint32)).permutation(windows).tolist()
    for phase in ledger.phases:
        rolled = ""
        for step in range(phase.steps):
            read = b"".join(i.to_bytes(8, "little") for i in order[step * 8 : step * 8 + 8])
            rolled = hashlib.blake2b(rolled.encode() + read, digest_size=16).hexdigest()
        assert phase.order_hash == rolled
    lines = [line for line in read_metrics(run / "metrics.jsonl") if line["event"] == "train"]
    for phase in (detour, decay):
        assert phase.targets == sum(line["targets"] for line in lines if line["phase"] == phase.name)
    assert 12 * 8 * 40 < detour.targets < 12 * 8 * 47, "ends of documents inside windows predict nothing"
    assert decay.targets / decay.tokens == pytest.approx(0.3, abs=0.03)
    assert [line["tokens"] for line in lines] == [STEP * n for n in range(1, 21)]
    assert detour.train_loss == lines[11]["loss"]
    assert decay.train_loss == lines[19]["loss"]


def test_what_was_asked_for(ledger: Ledger) -> None:
    names = ("name", "objective", "masking", "frozen_layers", "head", "data", "isolate_documents", "adopted_from")
    assert [[getattr(phase, name) for name in names] for phase in ledger.phases] == [
        ["detour", "clm", None, "0,2", "keep", "continue", True, None],
        ["decay", "mlm", {"rate": 0.3, "rule": "mask", "special": "protected"}, None, "keep", "restart", False, None],
    ]
    rates = {"learning_rate": 3e-3, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-6, "weight_decay": 1e-5}
    assert ledger.optimizer == rates | {"gradient_clip": 0.25}
    assert (ledger.sequence_length, ledger.batch_sequences) == (48, 8)
    assert ledger.seeds == {"data": 42, "training": 17, "init": 17}
    assert (ledger.precision, ledger.dropout, ledger.distributed, ledger.world_sizes) == ("fp32", 0.0, "none", (1,))


def test_what_the_guard_and_the_corpus_gave(run: Path, ledger: Ledger) -> None:
    detour, decay = ledger.phases
    assert detour.leak == 0.0 < decay.leak
    # 3 layers, the first global; half of local_attention=16 to each side
    assert detour.reach == {"full_attention": (-1, 0), "sliding_attention": (8, 0)}
    assert decay.reach == {"full_attention": (-1, -1), "sliding_attention": (8, 8)}
    assert ledger.corpus.sources == pytest.approx({"a": 0.625, "b": 0.375}, abs=0.03)
    assert sum(ledger.corpus.sources.values()) == pytest.approx(1)
    assert ledger.corpus.tokens == ledger.corpus.windows * 48
    assert ledger.corpus.excluded_documents == 1
    assert len(ledger.corpus.exclusion_hash) == 64
    assert ledger.base.source == "fresh weights"
    assert ledger.base.architecture == "ModernBertForMaskedLM"


def test_flops(ledger: Ledger) -> None:
    """Width 32, inner 32, 3 layers, vocabulary 500; layers 0 and 2 frozen in the detour."""
    layer = 32 * 96 + 32 * 32 + 32 * 64 + 32 * 32  # query, key, value; output; both halves of the gated unit; output
    head = 32 * 32 + 32 * 500
    detour = 2 * (2 * 3 * layer + layer) + 12 * 32 * (49 / 2 + 9 + 9) + 6 * head
    decay = 6 * 3 * layer + 12 * 32 * (48 + 17 + 17) + 6 * 0.3 * head
    assert [p.flops for p in ledger.phases] == pytest.approx([detour * 12 * STEP, decay * 8 * STEP])
    assert ledger.flops == pytest.approx(sum(p.flops for p in ledger.phases))
