"""A run is one trajectory: however it is interrupted, frozen, branched, or given text of a phase's
own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from tests.helpers.trainer_make import batches, begin, refusal, train
from tests.helpers.two_processes import GOLDEN, curve
from trainer import api
from trainer.ledger import read_ledger
from trainer.model.families import layers_of
from trainer.model.network import Trainee
from trainer.train.optimizer import factor, make_optimizer, set_rate
from trainer.train.progress import Tick
from trainer.train.start import base_model


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def test_the_curve_is_the_golden_one(reference: Path) -> None:
    """Twenty steps on one process."""
    assert len(GOLDEN) == 20
    assert curve(reference) == pytest.approx(GOLDEN, abs=1e-5)


def test_the_export_loads_bidirectional_in_either_version_of_the_library(reference: Path) -> None:
    folder = reference / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids = tokenizer(
        "The patient received metformin 500 mg twice daily. " * 6, return_tensors="pt"
    ).input_ids
    assert ids.shape[1] > 2 * model.config.local_attention
    changed = ids.clone()
    changed[:, -1] = tokenizer.mask_token_id
    with torch.no_grad():
        assert not torch.equal(
            model(input_ids=ids).logits[:, 0], model(input_ids=changed).logits[:, 0]
        )
        hidden = AutoModel.from_pretrained(folder)(input_ids=ids)[0]
    assert hidden.shape == (1, ids.shape[1], 32)
    config = json.loads((folder / "config.json").read_text())
    assert config["global_attn_every_n_layers"] == 3
    assert config["global_rope_theta"] == 160000.0
    assert read_ledger(reference / "ledger.json") == read_ledger(folder)
    assert "toy_detour" in (folder / "README.md").read_text()
    assert (reference / "phases" / "detour" / "model.safetensors").is_file()


def test_stopping_and_resuming_gives_the_same_weights(
    reference: Path, small: list[str], tmp_path: Path
) -> None:
    """Told to stop while step 10 is reported, so after step 11; then resumed, twice."""
    out = tmp_path / "stopped"
    handler = signal.getsignal(signal.SIGTERM)

    def listen(tick: Tick) -> None:
        if tick.done == 10:
            os.kill(os.getpid(), signal.SIGTERM)

    assert train(out, small, progress=listen).status == "preempted"
    assert len(curve(out)) == 11
    assert signal.getsignal(signal.SIGTERM) == handler
    done = train(out, small, resume=True)
    assert curve(out) == curve(reference)
    assert equal(weights(out / "model"), weights(reference / "model"))
    assert api.ledger_diff(out, reference).matched
    assert train(out, small, resume=True).ledger == done.ledger


def test_micro_batches_activation_checkpointing_and_bf16_train(
    reference: Path, small: list[str], tmp_path: Path
) -> None:
    train(tmp_path / "a", [*small, "engine.activation_checkpointing=true", "batch.micro=3"])
    assert curve(tmp_path / "a") == pytest.approx(curve(reference), abs=1e-5)
    train(tmp_path / "b", [*small, "engine.precision=bf16"])
    assert curve(tmp_path / "b") == pytest.approx(curve(reference), abs=0.1)
    assert curve(tmp_path / "b") != curve(reference)
    assert not api.ledger_diff(tmp_path / "b", reference).matched


@pytest.mark.slow
def test_compiled_layers_give_the_same_curve(
    reference: Path, small: list[str], tmp_path: Path
) -> None:
    train(tmp_path / "compiled", [*small, "engine.compile=true"])
    assert curve(tmp_path / "compiled") == pytest.approx(curve(reference), abs=1e-3)
    assert torch._dynamo.config.optimize_ddp is False, "DDP would cut the compiled layers to pieces"


def test_freeze_then_thaw_equals_a_plain_loop(small: list[str], tmp_path: Path) -> None:
    """The reference: one AdamW over all parameters, gradients only where training is allowed."""
    overrides = [*small, "phases.0.freeze={layers: '0'}", "phases.1.data=restart"]
    out = tmp_path / "run"
    train(out, overrides)
    recipe, tokenizer, _ = begin(overrides)
    model = base_model(recipe, tokenizer)
    module, optimizer = Trainee(model), make_optimizer(model, recipe.optimizer)
    for number, phase in enumerate(recipe.phases):
        layers_of(model)[0].requires_grad_(number == 1)
        made, steps = batches(overrides, number), recipe.steps(phase)
        for step in range(steps):
            batch = made.make(step * 8)
            (micro,) = batch.micros
            rate = factor(phase, step, steps=steps, step_tokens=recipe.step_tokens)
            set_rate(optimizer, 3e-3 * rate)
            tensors = (micro.input_ids, micro.positions, micro.targets)
            loss = module(*tensors, causal=phase.objective == "clm")
            (loss / batch.targets).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    found = weights(out / "model")
    for name, p in model.named_parameters():
        assert torch.equal(p.detach(), found[name]), name


def test_zeroed_gradients_leave_weight_decay_at_work(small: list[str], tmp_path: Path) -> None:
    """The paper's way: AdamW without a gradient or moments still shrinks matrices by rate / peak *
    decay a step.
    """
    freeze = "phases.0.freeze={layers: '0', zeroed_gradients: true}"
    overrides = [*small, freeze, "optimizer.weight_decay=0.01"]
    detour = train(tmp_path, overrides).ledger.phases[0]
    recipe, tokenizer, _ = begin(overrides)
    shrunk = 1.0
    for step in range(12):
        shrunk *= 1 - 0.01 * factor(recipe.phases[0], step, steps=12, step_tokens=8 * 48)
    assert shrunk < 0.95
    after = weights(tmp_path / "phases" / "detour")
    for name, start in base_model(recipe, tokenizer).named_parameters():
        if name.startswith("model.layers.0."):
            expected = start.detach() * (shrunk if start.ndim >= 2 else 1.0)
            torch.testing.assert_close(after[name], expected, rtol=1e-5, atol=1e-7)
        elif start.ndim >= 2:
            assert not torch.allclose(after[name], start.detach() * shrunk, rtol=1e-3), name
    assert detour.frozen_layers == "0 (gradients zeroed)"


def test_a_branch_adopts_the_phases_of_another_run(
    reference: Path, small: list[str], tmp_path: Path
) -> None:
    branch = [*small, f"reuse={{run: {reference}, through: detour}}"]
    same = train(tmp_path / "same", branch)
    assert len(curve(tmp_path / "same")) == 8
    assert equal(weights(tmp_path / "same" / "model"), weights(reference / "model"))
    assert api.ledger_diff(tmp_path / "same", reference).matched
    assert same.ledger.phases[0].adopted_from == "toy_detour"
    assert train(tmp_path / "longer", [*branch, "phases.1.tokens=4608"]).ledger.steps == 24
    refusal(r"seeds\.data", train, tmp_path / "other", [*branch, "seeds.data=1"])


def test_a_folder_with_a_run_is_not_overwritten_and_a_changed_recipe_not_resumed(
    reference: Path, small: list[str], tmp_path: Path
) -> None:
    refusal("holds a run already", train, reference, small)
    for change, what in (
        ("optimizer.learning_rate=1e-3", r"optimizer\.learning_rate"),
        ("engine.precision=bf16", "began in fp32 and would go on in bf16"),
    ):
        refusal(what, train, reference, [*small, change], resume=True)


def test_a_damaged_checkpoint_or_shard_is_one_clear_line(
    reference: Path, small: list[str], tmp_path: Path
) -> None:
    out = shutil.copytree(reference, tmp_path / "copy")
    shutil.rmtree(out / "model")
    (out / "ledger.json").unlink()
    assert train(out, small, resume=True).status == "done"
    assert equal(weights(out / "model"), weights(reference / "model"))
    shutil.rmtree(out / "model")
    (file,) = (out / "checkpoints" / "end-2-decay").glob("*.distcp")
    file.write_bytes(file.read_bytes()[:1000])
    refusal("the checkpoint cannot be read", train, out, small, resume=True)
    (out / "checkpoints" / "latest").write_text("end-1-detour")
    assert train(out, small, resume=True).status == "done"
    assert equal(weights(out / "model"), weights(reference / "model"))


@pytest.fixture(scope="module")
def two(small: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two sources; the decay reads longer windows of another mixture, in smaller batches."""
    root = tmp_path_factory.mktemp("two")
    for name, count in (("notes", 160), ("abstracts", 80)):
        lines = (
            json.dumps({"text": f"{name} {number} " + "the patient has a cough " * 12})
            for number in range(count)
        )
        (root / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    sources = [{"id": name, "path": f"{name}.jsonl"} for name in ("notes", "abstracts")]
    return [
        *(s for s in small if not s.startswith(("corpus.sources", "corpus.cache"))),
        f"corpus.root={root}",
        f"corpus.cache={root / 'corpora'}",
        f"corpus.sources={json.dumps(sources)}",
        "corpus.held_out=0.2",
        'phases.1.corpus={"shares": {"abstracts": 0.75, "notes": 0.25}}',
        "phases.1.sequence_length=96",
        'phases.1.batch={"sequences": 4, "micro": 2}',
    ]


class KilledError(Exception):
    """A kill."""


def test_a_phase_reads_its_own_text_and_a_kill_in_it_changes_no_bit(
    two: list[str], tmp_path: Path
) -> None:
    whole = train(tmp_path / "whole", two).ledger
    first, second = whole.phases
    assert (first.corpus, first.sequence_length, first.batch_sequences) == (None, None, None)
    assert second.corpus.sources["abstracts"] == pytest.approx(0.75, abs=0.02)
    assert (second.sequence_length, second.batch_sequences, second.steps) == (96, 4, 8)
    assert second.first_sample == 0, "another corpus is read from its beginning"
    overrides = [*two, "checkpoints.every=384", "checkpoints.keep=9"]

    def kill(tick: Tick) -> None:
        if tick.done >= 15:
            raise KilledError

    with pytest.raises(KilledError):
        train(tmp_path / "cut", overrides, progress=kill)
    again = train(tmp_path / "cut", overrides, resume=True).ledger
    assert again.model_hash == whole.model_hash
    assert [p.order_hash for p in again.phases] == [p.order_hash for p in whole.phases]


def test_a_corpus_that_a_phase_returns_to_is_continued(two: list[str], tmp_path: Path) -> None:
    own = {"b": {"corpus": {"shares": {"notes": 1.0}}}, "d": {"data": "restart"}}
    phases = [
        {"name": name, "objective": "clm", "tokens": 1536, **own.get(name, {})} for name in "abcde"
    ]
    overrides = [*(o for o in two if not o.startswith("phases")), f"phases={json.dumps(phases)}"]
    records = train(tmp_path / "run", overrides).ledger.phases
    assert [record.first_sample for record in records] == [0, 0, 32, 0, 32]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('phases.1.corpus={"shares": {"abstracts": 0.75}}', "do not sum to 1"),
        ('phases.1.corpus={"shares": {"letters": 1.0}}', "no source of the corpus"),
        ("phases.1.corpus={}", "shares"),
        ("phases.1.sequence_length=100000", "longer than the model"),
    ],
)
def test_a_wrong_phase_is_refused_before_anything_is_trained(
    two: list[str], tmp_path: Path, change: str, message: str
) -> None:
    refusal(message, train, tmp_path / "run", [*two, change])
