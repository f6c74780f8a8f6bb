"""Each field of a ledger by hand and on its own, and the card; runs that match; the optimiser's
rule and its rates.
"""

from __future__ import annotations

import json
import math
import re
from copy import deepcopy
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch

import biobench
from tests.helpers.ledger_make import ledger
from tests.helpers.trainer_make import refusal, train
from trainer import api
from trainer.export import model_card
from trainer.ledger import Ledger, LedgerDiff, compare, read_ledger
from trainer.recipe.library import load_recipe
from trainer.recipe.phases import Phase, Schedule
from trainer.recipe.spec import Optimizer
from trainer.train.checkpoint import Progress
from trainer.train.optimizer import factor, make_optimizer, set_rate
from trainer.train.progress import read_metrics
from trainer.train.record import code_version

ROOT = Path(__file__).resolve().parents[2]


def changed(fields: dict[str, Any]) -> Ledger:
    """A ledger that differs from ``ledger("a")`` in `fields` alone; dotted names go inside."""
    values = ledger("a").model_dump()
    for name, value in fields.items():
        *groups, last = name.split(".")
        inner: Any = values
        for group in groups:
            inner = inner[int(group) if group.isdigit() else group]
        inner[last] = value
    return Ledger.model_validate(values)


def against(fields: dict[str, Any]) -> LedgerDiff:
    return compare(ledger("a"), changed(fields))


BINDING = {
    "corpus.manifest_hash": ("x", "corpus manifest"),
    "base.init_hash": ("x", "initial weights"),
    "base.tokenizer_hash": ("x", "tokenizer"),
    "sequence_length": (2, "sequence length"),
    "batch_sequences": (2, "batch sequences"),
    "optimizer": ({"beta2": 0.9500001}, "optimizer"),
    "precision": ("bf16", "precision"),
    "dropout": (0.1, "dropout"),
    "seeds.data": (2, "data seed"),
    "tokens": (2, "total tokens"),
    "steps": (2, "total steps"),
    "phases.0.tokens": (2, "phase 1 tokens"),
    "phases.0.steps": (2, "phase 1 steps"),
    "phases.0.first_sample": (1, "phase 1 first sample"),
    "phases.0.last_sample": (2, "phase 1 last sample"),
    "phases.0.order_hash": ("x", "phase 1 sample order"),
    "phases.0.peak_rate": (1.0000001, "phase 1 peak rate"),
    "phases.0.final_rate": (0.9999999, "phase 1 final rate"),
    "phases.0.schedule": ({"warmup": 5}, "phase 1 schedule"),
    "phases.0.frozen_layers": ("0-7", "phase 1 frozen layers"),
    "phases.0.isolate_documents": (False, "phase 1 isolate documents"),
    "phases.0.masking": ({"rate": 0.2}, "phase 1 masking"),
    "phases.0.head": ("reinit", "phase 1 head"),
}
FREE: dict[str, Any] = {
    **dict.fromkeys(
        ("seeds.training", "seeds.init", "flops", "phases.0.targets", "phases.0.flops"), 2
    ),
    "code_version": "2",
    "device": "NVIDIA H200",
    "world_sizes": (8,),
    "distributed": "ddp",
    "phases.0.name": "b",
    "phases.0.objective": "clm",
    "phases.0.kernels": {"full_attention": "cudnn"},
}


def test_twins_agree_on_what_binds() -> None:
    for field, (value, line) in BINDING.items():
        diff = against({field: value})
        assert [r.name for r in diff.differing] == [line]
        assert diff.verdict == f"not matched: {line}"
        assert diff.differing[0].first != diff.differing[0].second
        # the other way round, and with another training seed too: no twins, and no noise pair
        other = compare(changed({field: value, "seeds.training": 2}), ledger("a"))
        assert other.verdict == f"not matched: {line}"
        assert not diff.noise_pair
        assert not other.noise_pair


def test_twins_may_differ_in_what_is_free() -> None:
    for field, value in FREE.items():
        diff = against({field: value})
        assert diff.matched, field
        assert [line[0] for line in diff.lines()[1:-1] if line[0] != " "] == ["~"], field
        assert diff.noise_pair == (field == "seeds.training")


def test_a_phase_more_is_a_difference() -> None:
    one = ledger("a")
    more = one.model_copy(update={"phases": one.phases * 2})
    for diff in (compare(one, more), compare(more, one)):
        named = {r.name for r in diff.differing}
        assert {"phases", "phase 2 tokens", "phase 2 sample order"} <= named


def test_a_phase_s_own_window_and_corpus_are_compared_with_the_run_s() -> None:
    plain = ledger("a")
    assert against({"phases.0.sequence_length": plain.sequence_length}).matched
    own = plain.corpus.model_copy(update={"manifest_hash": "x"}).model_dump()
    for field, value, line in (
        ("sequence_length", 7, "sequence length"),
        ("batch_sequences", 7, "batch sequences"),
        ("corpus", own, "corpus manifest"),
    ):
        (row,) = against({f"phases.0.{field}": value}).differing
        assert row.name == f"phase 1 {line}"


def test_a_noise_pair_has_one_objective_and_masking_is_free_only_where_they_differ() -> None:
    """Matched runs that differ in the training seed and in what they predict: the difference is not
    noise alone.
    """
    diff = against(
        {"phases.0.objective": "clm", "phases.0.masking": {"rate": 0.2}, "seeds.training": 2}
    )
    assert diff.matched
    assert not diff.noise_pair
    assert diff.verdict == "matched, but trained with different training seeds (1 and 2)"
    assert (
        against({"phases.0.objective": "clm", "phases.0.masking": {"rate": 0.2}}).verdict
        == "matched"
    )
    noise = against({"seeds.training": 2})
    assert noise.verdict == "matched: a noise pair (training seeds differ: 1 and 2)"


def test_fields_of_earlier_ledgers_are_read() -> None:
    gone = {
        "skipped_steps": 0,
        "causal_share": 0.5,
        "rope_base": 1e4,
        "validation_losses": {"source a": 1.0},
    }
    assert changed({f"phases.0.{name}": value for name, value in gone.items()}) == ledger("a")


def test_fields_of_earlier_checkpoints_are_read() -> None:
    assert Progress.model_validate_json('{"step": 3, "skipped_steps": 0}') == Progress(step=3)


@pytest.mark.parametrize(
    ("head", "objective", "pipeline", "said"),
    [
        ("ForMaskedLM", "clm", "feature-extraction", "last phase was causal"),
        ("ForMaskedLM", "mlm", "fill-mask", ""),
        ("ForCausalLM", "clm", "text-generation", ""),
        ("ForCausalLM", "mlm", "feature-extraction", "last phase was masked"),
    ],
)
def test_the_card_names_the_classes_that_load_the_model(
    head: str, objective: str, pipeline: str, said: str
) -> None:
    masking = "masking: {rate: 0.3}, " if objective == "mlm" else ""
    phases = f"phases=[{{name: one, objective: {objective}, {masking}tokens: 800}}]"
    run = changed({"base.architecture": f"Any{head}"})
    card = model_card(load_recipe("toy_detour", [phases]), run)
    assert f"pipeline_tag: {pipeline}\n" in card
    assert re.findall(r"`(Auto\w+)`", card) == ["AutoModel", f"AutoModel{head}"]
    assert said in card
    assert said or "while these classes" not in card


def test_the_card_counts_no_removed_documents_where_the_ledger_does_not() -> None:
    recipe = load_recipe("toy_detour")
    for removed, said in ((None, "to exclude: 7."), (2, "to exclude: 7; documents removed for it")):
        run = changed({"corpus.excluded_documents": 7, "corpus.removed_documents": removed})
        assert said in model_card(recipe, run)


def test_detour_twin_and_noise_twin_match_and_say_what_is_free(
    reference: Path, small: list[str], tmp_path: Path
) -> None:
    twin, noise = (
        train(tmp_path / name, small, f"toy_{name}").out for name in ("mlm_twin", "noise_twin")
    )
    diff = api.ledger_diff(reference, twin)
    assert diff.verdict == diff.lines()[-1] == "matched"
    assert not diff.noise_pair
    of_phase = {f"phase 1 {name}" for name in ["name", "objective", "masking", "targets", "FLOPs"]}
    assert {r.name for r in diff.rows if not r.equal} == {"total FLOPs", *of_phase}
    assert api.ledger_diff(twin, noise).noise_pair


def test_ledgers_are_read_from_anywhere_and_damage_is_named(
    reference: Path, tmp_path: Path
) -> None:
    assert (
        read_ledger(reference)
        == read_ledger(reference / "model")
        == read_ledger(reference / "ledger.json")
    )
    refusal("no ledger", read_ledger, tmp_path)
    values = json.loads((reference / "ledger.json").read_text())
    del values["phases"]
    (tmp_path / "ledger.json").write_text(json.dumps(values))
    refusal("damaged", read_ledger, tmp_path)


def phase(shape: str, **more: object) -> Phase:
    schedule = Schedule.model_validate({"shape": shape, **more})
    return Phase(name="p", objective="clm", tokens=1000, schedule=schedule)


def test_adamw_is_the_paper_s_decoupled_rule() -> None:
    """Weights shrink by (rate / peak) * decay per step; biases and norms do not."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3)).double()
    ours = make_optimizer(model, Optimizer(learning_rate=2e-2, weight_decay=1e-3))
    copy = deepcopy(model)
    groups = [
        {"params": [p], "weight_decay": 1e-3 / 2e-2 * (p.ndim > 1)} for p in copy.parameters()
    ]
    theirs = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-6)
    for step in range(1, 30):
        rate, batch = 2e-2 * (1 - step / 60), torch.randn(8, 4).double()
        set_rate(ours, rate)
        for group in theirs.param_groups:
            group["lr"] = rate
        for network, optimizer in ((model, ours), (copy, theirs)):
            network(batch).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    for p, expected in zip(model.parameters(), copy.parameters(), strict=True):
        torch.testing.assert_close(p, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", ["1-sqrt", "linear", "cosine"])
@pytest.mark.parametrize(("warmup", "cooldown"), [(0, None), (95, None), (100, 300), (105, 40)])
def test_every_step_has_the_rate_that_tokens_give_it(
    shape: str, warmup: int, cooldown: int | None
) -> None:
    """By the tokens that are read: at a step's end while the rate rises, before the step while it
    falls.
    """
    p = phase(shape, warmup=warmup, cooldown=cooldown, final=0.2)
    for step in range(
        103
    ):  # the last step ends beyond the phase's 1000 tokens, so all count from its true end
        before, after, end = step * 10, step * 10 + 10, 1030
        if after <= warmup:
            expected = after / warmup
        else:
            fall = cooldown if cooldown is not None else end - warmup
            over = max(0, before - (end - fall)) / fall
            down = {
                "1-sqrt": over**0.5,
                "linear": over,
                "cosine": (1 - math.cos(math.pi * over)) / 2,
            }[shape]
            expected = 1 - 0.8 * down
        assert factor(p, step, steps=103, step_tokens=10) == pytest.approx(expected, abs=1e-12), (
            step
        )
    assert factor(phase("constant"), 77, steps=100, step_tokens=10) == 1


STEP = 8 * 48
"""Tokens a step."""
OVERRIDES = [
    "phases.0.schedule={shape: linear, warmup: 1000, cooldown: 1536, final: 0.5, peak: 0.5}",
    "phases.0.isolate_documents=true",
    "phases.0.freeze={layers: '0,2'}",
    "phases.1.data=restart",
    "phases.1.schedule={shape: 1-sqrt, final: 0.1, peak: 2}",
    "phases.1.masking={rate: 0.3}",
    "optimizer.gradient_clip=0.25",
    "corpus.sources=[{id: a, embedded: {documents: 100}}, {id: b, embedded: {documents: 60, seed: "
    "8}}]",
    "corpus.exclude={files: [kept_out.txt], ngram: 9}",
]


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory, small: list[str]) -> Ledger:
    root = tmp_path_factory.mktemp("by_hand")
    (root / "kept_out.txt").write_text("a text that is not in the corpus")
    held = train(root / "run", [*small, *OVERRIDES, f"corpus.root={root}"]).ledger
    lines = [
        line for line in read_metrics(root / "run" / "metrics.jsonl") if line["event"] == "train"
    ]
    assert [line["tokens"] for line in lines] == [STEP * n for n in range(1, 21)]
    for phase, of_phase in zip(held.phases, (lines[:12], lines[12:]), strict=True):
        assert phase.train_loss == of_phase[-1]["loss"]
        assert phase.final_rate == pytest.approx(of_phase[-1]["learning_rate"], rel=1e-12)
        assert phase.targets == sum(line["targets"] for line in of_phase)
    return held


def test_rates_samples_tokens_and_targets(by_hand: Ledger) -> None:
    """Peak 3e-3 x 0.5 over 12 steps, then 3e-3 x 2 over 8."""
    detour, decay = by_hand.phases
    fallen = (11 * STEP - (12 * STEP - 1536)) / 1536
    assert (detour.peak_rate, detour.final_rate) == pytest.approx(
        (1.5e-3, 1.5e-3 * (1 - 0.5 * fallen))
    )
    assert (decay.peak_rate, decay.final_rate) == pytest.approx(
        (6e-3, 6e-3 * (0.1 + 0.9 * (1 - (7 / 8) ** 0.5)))
    )
    for phase, steps in ((detour, 12), (decay, 8)):
        assert (phase.first_sample, phase.last_sample) == (0, 8 * steps - 1)
    assert 12 * 8 * 40 < detour.targets < 12 * 8 * 47, "ends inside windows predict nothing"
    assert decay.targets / decay.tokens == pytest.approx(0.3, abs=0.03)
    assert (detour.frozen_layers, decay.frozen_layers) == ("0,2", None)
    assert by_hand.corpus.sources == pytest.approx({"a": 0.625, "b": 0.375}, abs=0.03)
    assert by_hand.corpus.excluded_documents == 1


def test_flops(by_hand: Ledger) -> None:
    """Width 32, inner 32, 3 layers, vocabulary 500; layers 0 and 2 frozen in the detour."""
    layer = (
        32 * 96 + 32 * 32 + 32 * 64 + 32 * 32
    )  # query, key, value; output; both halves of the gated unit; output
    head = 32 * 32 + 32 * 500
    detour = 2 * (2 * 3 * layer + layer) + 12 * 32 * (49 / 2 + 9 + 9) + 6 * head
    decay = 6 * 3 * layer + 12 * 32 * (48 + 17 + 17) + 6 * 0.3 * head
    assert [p.flops for p in by_hand.phases] == pytest.approx(
        [detour * 12 * STEP, decay * 8 * STEP]
    )
    assert by_hand.flops == pytest.approx(sum(p.flops for p in by_hand.phases))


@pytest.mark.parametrize("git", [True, False])
def test_the_code_has_its_version_where_it_is_not_installed_and_git_is_missing(
    git: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def not_installed(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", not_installed)
    if not git:
        monkeypatch.setenv("PATH", str(tmp_path))
    version, _, commit = code_version().partition("+")
    assert version == biobench.__version__
    assert re.fullmatch("[0-9a-f]{12}" if git and (ROOT / ".git").exists() else "", commit)
