"""The probe's training against a plain loop, and which epoch and rate it keeps on scores written by
hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from biobench.errors import TrainingError
from biobench.finetune.engine import LoadedEncoder, finetune
from biobench.finetune.features import Features, extract
from biobench.finetune.loop import NonFiniteLossError
from biobench.finetune.prepare import Prepared
from biobench.finetune.probe import ProbeRun
from biobench.finetune.tuning import tuned
from biobench.models.heads import ProbeHead
from biobench.schema.training import Probe
from tests.finetune.conftest import Setup, Stage, silent

Ready = Callable[..., tuple[LoadedEncoder, Prepared]]


@pytest.fixture
def ready(setup: Setup) -> Ready:
    """`ready(task, probe, *overrides)`: a tiny encoder and the encoded task with that linear
    probe."""
    frozen, plain = "training.encoder=frozen", "kind: linear, pooling: mean, dropout: 0.0"
    return lambda task, probe, *more: setup(
        "tiny", task, frozen, f"probe={{{plain}, {probe}}}", *more
    )


def test_a_word_s_state_is_that_of_its_first_sub_token(ready: Ready) -> None:
    loaded, prepared = ready("demo_ner", "epochs: 1")
    kept = extract(loaded.encoder, prepared, "fp32", silent)
    split = prepared.test
    assert kept.states["test"].shape == (
        sum(len(e.words) for e in split.encoded),
        1,
        loaded.encoder.width,
    )
    assert kept.real["test"].all()
    begin = 0
    for encoded in split.encoded[:5]:
        with torch.inference_mode():
            hidden = loaded.encoder([encoded.ids])
        rows = kept.states["test"][begin : begin + len(encoded.words), 0].float()
        torch.testing.assert_close(
            rows, hidden[torch.from_numpy(encoded.first)], rtol=1e-3, atol=2e-3
        )
        begin += len(encoded.words)


@pytest.mark.parametrize("task", ["demo_topic", "demo_ner"])
def test_the_probe_is_plain_adamw_on_standardised_states(ready: Ready, task: str) -> None:
    """Batches of the seed and epoch, a rate that falls by the step to 0, decay, gradients clipped
    at 1.
    """
    loaded, prepared = ready(
        task, "learning_rates: [0.05], epochs: 3, batch_size: 7, weight_decay: 0.3"
    )
    outcome = finetune(loaded, prepared, 42, "fp32", silent)
    states = extract(loaded.encoder, prepared, "fp32", silent).states
    train, test = (states[name][:, 0].float() for name in ("train", "test"))
    split = prepared.train
    torch.manual_seed(42)
    linear = torch.nn.Linear(loaded.encoder.width, len(prepared.outputs))
    mean, std = train.mean(0), train.std(0, correction=0)
    train, test = (train - mean) / std, (test - mean) / std
    targets = [torch.from_numpy(np.atleast_1d(target)) for target in split.targets]
    rows = train.split([len(target) for target in targets])
    optimizer = torch.optim.AdamW(linear.parameters(), lr=0.05, weight_decay=0.3)
    kept, step, total = [], 0, 3 * -(-48 // 7)
    for epoch in range(3):
        order = np.random.default_rng([42, epoch]).permutation(48)
        for at in range(0, 48, 7):
            batch = order[at : at + 7]
            logits = linear(torch.cat([rows[i] for i in batch]))
            truth = torch.cat([targets[i] for i in batch])
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits, truth).backward()
            torch.nn.utils.clip_grad_norm_(linear.parameters(), 1.0)
            optimizer.param_groups[0]["lr"] = 0.05 * (total - step) / total
            optimizer.step()
            step += 1
        kept.append((step, linear(test).softmax(-1).detach().numpy()))
    assert outcome.record.steps == total
    wanted = dict(kept)[outcome.record.best_step]
    if task == "demo_topic":
        assert np.allclose([p.label_scores for p in outcome.predictions], wanted, atol=2e-3)
    else:
        said = [tag for p in outcome.predictions for tag in p.tags]
        same = [tag == prepared.outputs[i] for tag, i in zip(said, wanted.argmax(-1), strict=True)]
        assert np.mean(same) > 0.995


@pytest.mark.parametrize(
    ("scores", "rate", "step"),
    [([0.1, 0.3, 0.3, 0.3, 0.2, 0.4], 1, 9), ([0.1, 0.3, 0.3, 0.3, 0.2, 0.1], 0, 6)],
)
def test_the_first_of_the_best_epochs_of_the_first_of_the_best_rates_is_kept(
    ready: Ready, monkeypatch: pytest.MonkeyPatch, scores: list[float], rate: int, step: int
) -> None:
    """Two rates of three epochs of three steps; each epoch has a threshold of its own."""
    probe = "learning_rates: [0.01, 0.02], epochs: 3, batch_size: 16"
    loaded, prepared = ready("demo_topic", probe, "metric.selection=micro_f1")
    head = prepared.spec.head.model_copy(update={"threshold": "tuned"})
    prepared = replace(prepared, spec=prepared.spec.model_copy(update={"head": head}))
    stage = Stage(monkeypatch, scores, [0.1 * i for i in range(1, 7)])
    outcome = finetune(loaded, prepared, 1, "fp32", silent)
    assert outcome.record.steps == 18, "all that was tried is counted"
    place = 3 * rate + step // 3 - 1
    assert (outcome.record.best_step, outcome.best_score) == (step, scores[place])
    assert stage.used[-1] == outcome.threshold == pytest.approx(0.1 * (place + 1))
    (tested,) = stage.tested
    assert all(torch.equal(value, tested[name]) for name, value in stage.validated[place].items())
    assert [p.validation["micro_f1"] for p in outcome.record.curve] == scores[
        3 * rate : 3 * rate + 3
    ]
    falling = [(0.01, 0.02)[rate] * (9 - s) / 9 for s in (2, 5, 8)]
    assert [p.learning_rate for p in outcome.record.curve] == pytest.approx(falling)


def test_a_rate_whose_loss_is_not_finite_is_skipped(
    ready: Ready, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, prepared = ready("demo_topic", "learning_rates: [1e-9, 1e-2, 3e-2], epochs: 1")
    fit = ProbeRun.fit

    def fails(run: ProbeRun) -> bool:
        raise NonFiniteLossError("step 1")

    monkeypatch.setattr(
        ProbeRun, "fit", lambda run: (fit if run.recipe.learning_rate == 1e-2 else fails)(run)
    )
    backoffs = finetune(loaded, prepared, 1, "fp32", silent).record.backoffs
    skipped = [f"the loss is not finite at learning rate {rate}: skipped" for rate in (1e-9, 0.03)]
    assert [text for text in backoffs if "skipped" in text] == skipped
    monkeypatch.setattr(ProbeRun, "fit", fails)
    with pytest.raises(TrainingError, match="no learning rate gives a finite loss"):
        finetune(loaded, prepared, 1, "fp32", silent)
    with pytest.raises(TrainingError, match="a probe chooses its rate itself"):
        tuned(loaded, prepared, 42, "fp32", silent)


@pytest.mark.parametrize("tokens", [1, 4, 7])
def test_pooled_vectors_are_the_first_token_and_means_of_even_pieces(
    ready: Ready, tokens: int
) -> None:
    loaded, prepared = ready("demo_topic", "learning_rates: [0.01], epochs: 1")
    work = Features(loaded.encoder, prepared, "fp32", {})
    rows = torch.eye(tokens)
    pooled = {}
    for pooling in ("cls", "mean", "attention"):
        work.probe = Probe.model_validate({"kind": "linear", "pooling": pooling, "segments": 4})
        pooled[pooling] = work._pooled(rows)
    torch.testing.assert_close(pooled["cls"], rows[:1])
    torch.testing.assert_close(pooled["mean"], rows.sum(0, keepdim=True) / tokens)
    assert pooled["attention"].shape == (1 + min(4, tokens), tokens)
    torch.testing.assert_close(pooled["attention"][0], rows[0])
    # Pieces in turn, of sizes that differ by one at most, that hold every token once.
    pieces = pooled["attention"][1:]
    held, sizes = pieces > 0, (pieces > 0).sum(1)
    assert held.sum(0).tolist() == [1] * tokens
    assert held.nonzero()[:, 1].tolist() == list(range(tokens))
    assert sizes.max() - sizes.min() <= 1
    torch.testing.assert_close(pieces, held / sizes[:, None])


def test_a_direction_weighs_by_its_product_over_the_root_of_the_width() -> None:
    probe = Probe(pooling="attention", kind="linear", dropout=0.0)
    head = ProbeHead(4, 2, probe).eval()
    states = torch.randn(2, 3, 4)
    real = torch.tensor([[True, True, True], [True, True, False]])
    with torch.no_grad():
        head.direction.copy_(torch.tensor([1.0, -2.0, 0.5, 3.0]))
        for row, count in enumerate((3, 2)):
            own = states[row, :count]
            weights = ((own @ head.direction) / 2).softmax(0)
            torch.testing.assert_close(
                head(states, real)[row], head.layers((weights[:, None] * own).sum(0))
            )
    small = ProbeHead(8, 2, Probe(kind="mlp", hidden=3))
    assert (small.layers[1].out_features, small.layers[4].in_features) == (3, 3)
