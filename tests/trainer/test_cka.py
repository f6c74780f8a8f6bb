"""CKA against a direct computation, on noise and under what must not change it; states, reports and
refusals.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from transformers import AutoModel, RobertaConfig

from tests.helpers.cli_make import Said, call
from tests.helpers.ledger_make import ledger
from tests.helpers.ledger_make import write as write_ledger
from tests.helpers.trainer_make import TEXTS, refusal, write
from trainer.analysis.cka import compare, groups
from trainer.analysis.similarity import Estimate, cka, gram, mean_of
from trainer.analysis.states import draw, layer_states, token_ids
from trainer.corpus.embedded import documents
from trainer.corpus.shards import train_tokenizer

Floats = NDArray[np.float64]


def linear_cka(x: Floats, y: Floats) -> dict[str, Estimate]:
    """CKA of two sets of states (texts, width) of the same texts; the widths may differ."""
    return cka(gram(x), gram(y), texts=np.arange(len(x)), total=len(x))


def related(n: int = 30, width: int = 6, other: int = 4, seed: int = 0) -> tuple[Floats, Floats]:
    """Two sets of states of which one is partly a linear image of the other."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, width)) + 3
    return x, x @ rng.normal(size=(width, other)) + rng.normal(size=(n, other))


def textbook_biased(x: Floats, y: Floats) -> float:
    """Kornblith et al. 2019: Frobenius norms of cross products of centred features."""
    x, y = x - x.mean(0), y - y.mean(0)
    return float(np.linalg.norm(x.T @ y) ** 2 / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)))


def u_centred(k: Floats) -> Floats:
    """Székely and Rizzo 2014, definition 2."""
    n = len(k)
    k = k - np.diag(np.diag(k))
    rows = k.sum(1)
    u = k - rows[:, None] / (n - 2) - rows[None, :] / (n - 2) + k.sum() / ((n - 1) * (n - 2))
    return np.asarray(u - np.diag(np.diag(u)))


def textbook_debiased(x: Floats, y: Floats) -> float:
    """Inner products of U-centred Gram matrices, of states that are not even centred."""
    a, b = u_centred(x @ x.T), u_centred(y @ y.T)
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def test_equal_to_a_direct_computation() -> None:
    x, y = related()
    found = linear_cka(x, y)
    assert found["biased"].value == pytest.approx(textbook_biased(x, y), abs=1e-12)
    assert found["debiased"].value == pytest.approx(textbook_debiased(x, y), abs=1e-12)
    itself = linear_cka(x, x)
    assert (itself["biased"].value, itself["debiased"].value) == pytest.approx((1, 1), abs=1e-12)
    assert itself["debiased"].se < 1e-12


def test_independent_noise_is_zero_debiased_and_far_from_it_biased() -> None:
    rng = np.random.default_rng(1)
    found = linear_cka(rng.normal(size=(500, 768)), rng.normal(size=(500, 768)))
    low, high = found["debiased"].interval()
    assert low < 0 < high < low + 0.03
    assert found["biased"].value == pytest.approx(0.61, abs=0.01)


@settings(max_examples=20)
@given(st.integers(0, 2**31), st.floats(1e-3, 1e3), st.floats(-50, 50))
def test_orthogonal_maps_scalings_and_shifts_change_nothing(
    seed: int, scale: float, shift: float
) -> None:
    x, y = related(20, 5, 4, seed)
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))
    plain = linear_cka(x, y)
    for other in (linear_cka(scale * (x @ turn) + shift, y), linear_cka(y, x)):
        assert other["biased"].value == pytest.approx(plain["biased"].value, abs=1e-8)
        assert other["debiased"].value == pytest.approx(plain["debiased"].value, abs=1e-8)


def test_jackknife_equals_leaving_every_text_out_in_turn() -> None:
    x, y = related(12)
    found = linear_cka(x, y)
    without = [linear_cka(np.delete(x, i, 0), np.delete(y, i, 0)) for i in range(12)]
    for name in ("biased", "debiased"):
        values = np.array([w[name].value for w in without])
        estimate: Estimate = found[name]
        np.testing.assert_allclose(estimate.deviations, values - values.mean(), atol=1e-12)
        assert estimate.se == pytest.approx(
            np.sqrt(11 / 12 * ((values - values.mean()) ** 2).sum())
        )


def test_states_that_share_a_large_offset_keep_their_digits() -> None:
    # Deep layers hold a few dimensions with huge common values; float32 then has no digits left for
    # the rest.
    offset = np.eye(1, 24) * 4096.0
    x, y = ((s + offset).astype(np.float32) for s in related(100, 24, 24, seed=3))
    wanted = textbook_biased(x.astype(np.float64), y.astype(np.float64))
    assert linear_cka(x, y)["biased"].value == pytest.approx(wanted, abs=1e-9)


def test_drawings_that_share_texts_share_their_errors() -> None:
    x, y = related(40)
    rows = np.arange(40)
    once = cka(gram(x), gram(y), texts=rows, total=40)["debiased"]
    assert mean_of([once, once]).se == pytest.approx(once.se)
    halves = [
        cka(gram(x[p]), gram(y[p]), texts=p, total=40)["debiased"] for p in (rows[:20], rows[20:])
    ]
    both = mean_of(halves)
    assert both.se == pytest.approx(np.sqrt(halves[0].se ** 2 + halves[1].se ** 2) / 2)


def test_equal_texts_are_refused() -> None:
    refusal("the same for all texts", linear_cka, np.ones((9, 3)), np.ones((9, 3)))


def test_intervals_and_ratios_by_hand() -> None:
    """Student's t at 97.5%: 2.7764 with 4 degrees of freedom."""
    one = Estimate(0.5, np.array([0.1, -0.1, 0.02, -0.02, 0.0]), 5)
    se = np.sqrt(4 / 5 * (0.02 + 0.0008))
    assert one.se == pytest.approx(se)
    assert one.interval() == pytest.approx((0.5 - 2.77645 * se, 0.5 + 2.77645 * se), abs=1e-5)
    other = Estimate(0.25, np.array([0.0, 0.0, 0.0, 0.05, -0.05]), 9)
    # of the log: deviations by their values, and the fewer of the two numbers of texts
    spread = one.deviations / 0.5 - other.deviations / 0.25
    half = 2.77645 * np.sqrt(4 / 5 * (spread**2).sum())
    for found in (one.over(other), other.over(one)):
        value, low, high = found
        assert (np.log(value / low), np.log(high / value)) == pytest.approx((half, half), rel=1e-5)
    assert one.over(other) == pytest.approx((2.0, 2 * np.exp(-half), 2 * np.exp(half)), rel=1e-5)
    for value in (0.0, -0.1):
        nothing = Estimate(value, one.deviations, 5)
        assert nothing.over(one) is None
        assert one.over(nothing) is None


OTHERS: dict[str, tuple[dict[str, int], str]] = {
    "depth": ({"num_hidden_layers": 3}, "has 3 layers of 32"),
    "width": ({"hidden_size": 16}, "has 4 layers of 16"),
    "tokenizer": ({"vocabulary": 420}, "the tokenizers of "),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A start, a twin near to it and one further away; one other in each respect."""
    root = tmp_path_factory.mktemp("models")
    moved = {"a": 0.0, "near": 0.05, "far": 0.5}
    made = {name: write(root / name, seed=5, moved=by) for name, by in moved.items()}
    return made | {name: write(root / name, seed=5, **OTHERS[name][0]) for name in OTHERS}


def test_report_with_noise(models: dict[str, Path]) -> None:
    a, near, far, *_ = models.values()
    drawn = draw(TEXTS, 40, [42, 43])
    assert len(drawn.texts) > 40
    report = compare(a, far, lambda: drawn, noise=(a, near), max_length=64)
    wanted = [*"0123", "low", "mid", "late", "all"]
    assert [x.where for x in report.lines if x.estimator == "biased"] == wanted
    for line in report.lines:
        assert line.ratio.value > 1
        assert line.divergence.low <= line.divergence.value <= line.divergence.high
        assert set(line.seeds) == {42, 43}
    every = report.of("all", "debiased")
    layers = [report.of(str(n), "debiased").divergence.value for n in range(4)]
    assert every.divergence.value == pytest.approx(np.mean(layers))
    assert every.ratio.value == pytest.approx(every.divergence.value / every.noise.value)
    alone = compare(a, near, lambda: drawn, max_length=64).of("all", "debiased")
    assert alone.divergence.value == pytest.approx(every.noise.value)
    assert alone.noise is None


def test_a_noise_pair_that_its_ledgers_deny_is_named(
    models: dict[str, Path], tmp_path: Path
) -> None:
    def run(name: str, training: int, steps: int = 1) -> Path:
        folder = shutil.copytree(models["a"], tmp_path / name)
        write_ledger(folder / "ledger.json", ledger("a", training=training, steps=steps))
        return folder

    first, drawn = run("first", 17), draw(TEXTS, 20, [42])
    for other, said in (
        (run("seed", 42), ""),
        (run("same", 17), "no noise pair: objectives differ"),
        (run("longer", 42, steps=2), "no noise pair: not matched: total steps"),
    ):
        report = compare(first, first, lambda: drawn, noise=(first, other), max_length=32)
        notes = " ".join(report.notes)
        assert said in notes
        assert said or "noise pair" not in notes


def test_groups_are_the_papers() -> None:
    assert groups(22) == {
        "low": tuple(range(8)),
        "mid": tuple(range(8, 15)),
        "late": tuple(range(15, 22)),
    }


SAMPLED = "--texts embedded --n 8 --max-length 32"


@pytest.fixture
def analyze(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Said]:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: call(monkeypatch, capfd, "analyze", *map(str, arguments))


def test_the_command_prints_json_and_a_table(
    models: dict[str, Path], analyze: Callable[..., Said]
) -> None:
    options = "--texts embedded --n 12 --seeds 42,43 --max-length 48"
    arguments = (
        "cka",
        models["a"],
        models["far"],
        "--noise",
        models["a"],
        models["near"],
        options,
    )
    found = json.loads(analyze(*arguments, "--json").out)
    assert (found["per_seed"], len(found["lines"])) == (12, 16)
    printed = analyze(*arguments).out
    assert "noise (debiased)" in printed
    assert "95% jackknife intervals over texts" in printed


@pytest.mark.parametrize("other", OTHERS)
def test_checkpoints_that_do_not_fit_are_refused_and_nothing_is_written(
    other: str, models: dict[str, Path], analyze: Callable[..., Said], tmp_path: Path
) -> None:
    a, b = models["a"], models[other]
    for arguments in ((a, b), (a, a, "--noise", a, b)):
        line = analyze("cka", *arguments, SAMPLED).refusal()
        assert OTHERS[other][1] in line
        assert str(b) in line
    refused = analyze("transplant", a, b, "--layers 0 --out", tmp_path / "hybrid").refusal()
    assert "the checkpoints do not fit: " in refused
    assert not list(tmp_path.iterdir())


def test_a_run_s_folder_is_answered_with_its_model(
    models: dict[str, Path], analyze: Callable[..., Said], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(models["a"], run / "model")
    for command in (("cka", SAMPLED), ("transplant", "--layers 0 --out", tmp_path / "out")):
        assert f"give {run / 'model'}" in analyze(command[0], models["a"], run, *command[1:]).err


def test_pooling_is_in_float64(models: dict[str, Path]) -> None:
    """The mean of float32 states in float32 is about 1e-7 off; sums of deep layers lose far
    more."""
    ids, _ = token_ids([models["a"]], TEXTS[:5], 64)
    found = layer_states(models["a"], ids, device="cpu")
    library = AutoModel.from_pretrained(models["a"]).eval()
    for number, text in enumerate(ids):
        with torch.no_grad():
            hidden = library(
                input_ids=torch.tensor([text]), output_hidden_states=True
            ).hidden_states
        for layer in range(3):
            exact = hidden[layer + 1][0].double().mean(0).numpy()
            np.testing.assert_allclose(found[layer, number], exact, rtol=0, atol=1e-13)


def test_every_text_is_as_likely_as_any_other() -> None:
    texts = [str(n) for n in range(40)]
    sample = draw(texts, 10, range(800))
    counts = np.zeros(40)
    for rows in sample.drawn.values():
        assert (np.diff(rows) > 0).all()
        counts[[int(sample.texts[r]) for r in rows]] += 1
    # a quarter of 800, five standard deviations of 12 either way
    assert (abs(counts - 200) < 61).all()
    refusal("3 texts are too few", draw, texts[:3], 100, [1])
    for count, sizes in ((40, [40]), (45, [40]), (39, [39, 39])):
        assert [len(rows) for rows in draw(texts, count, [42, 43]).drawn.values()] == sizes


def test_texts_are_cut_at_the_model_s_positions_and_counted(
    models: dict[str, Path], tmp_path: Path
) -> None:
    texts, encoder = [TEXTS[n][: 40 * (n + 1)] for n in range(9)], models["a"]
    lengths = sorted(len(ids) for ids in token_ids([encoder], texts, 10_000)[0])
    assert lengths[-1] == 128 > lengths[3] > lengths[2], "max_position_embeddings"
    ids, cut = token_ids([encoder], texts, lengths[2])
    assert (max(map(len, ids)), cut) == (lengths[2], 6)
    roberta = tmp_path / "roberta"
    RobertaConfig(max_position_embeddings=34, vocab_size=400).save_pretrained(roberta)
    train_tokenizer(documents(100, seed=1), 400, 128).save_pretrained(roberta)
    assert {len(x) for x in token_ids([roberta], TEXTS[:9], 512)[0]} == {32}, (
        "two rows are for padding"
    )
