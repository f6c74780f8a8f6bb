"""Each field of a ledger on its own: whether twins must agree on it, and which line says so."""

from __future__ import annotations

from typing import Any

from tests.helpers.ledger_make import ledger
from trainer.ledger import Ledger, LedgerDiff, compare


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
    "sequence_length": (2, "window tokens"),
    "batch_sequences": (2, "batch windows"),
    "optimizer": ({"beta2": 0.9500001}, "optimiser"),
    "precision": ("bf16", "precision"),
    "dropout": (0.1, "dropout"),
    "seeds.data": (2, "data seed"),
    "tokens": (2, "total tokens"),
    "steps": (2, "total steps"),
    "phases.0.tokens": (2, "phase 1 tokens"),
    "phases.0.steps": (2, "phase 1 steps"),
    "phases.0.first_sample": (1, "phase 1 samples"),
    "phases.0.last_sample": (2, "phase 1 samples"),
    "phases.0.order_hash": ("x", "phase 1 sample order"),
    "phases.0.peak_rate": (1.0000001, "phase 1 peak rate"),
    "phases.0.final_rate": (0.9999999, "phase 1 final rate"),
    "phases.0.schedule": ({"warmup": 5}, "phase 1 schedule"),
    "phases.0.frozen_layers": ("0-7", "phase 1 frozen layers"),
    "phases.0.isolate_documents": (False, "phase 1 isolated documents"),
    "phases.0.masking": ({"rate": 0.2}, "phase 1 masking"),
}
FREE = {
    "seeds.training": 2,
    "seeds.init": 2,
    "code_version": "2",
    "flops": 2.0,
    "phases.0.name": "b",
    "phases.0.objective": "clm",
    "phases.0.targets": 2,
    "phases.0.kernels": {"full_attention": "cudnn"},
    "device": "NVIDIA H200",
    "world_sizes": (8,),
    "distributed": "ddp",
    "phases.0.flops": 2.0,
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


def test_a_head_drawn_anew_in_one_of_two_is_a_difference() -> None:
    assert [r.name for r in against({"phases.0.head": "reinit"}).differing] == ["phase 1 head"]


def test_a_phase_more_is_a_difference() -> None:
    one = ledger("a")
    more = one.model_copy(update={"phases": (*one.phases, one.phases[0].model_copy(update={"name": "more"}))})
    for diff in (compare(one, more), compare(more, one)):
        named = {r.name for r in diff.differing}
        assert {"phases", "phase 2 tokens", "phase 2 samples", "phase 2 sample order"} <= named


def test_a_phase_s_own_window_and_corpus_are_compared_with_the_run_s() -> None:
    plain = ledger("a")
    assert against({"phases.0.sequence_length": plain.sequence_length}).matched
    own = plain.corpus.model_copy(update={"manifest_hash": "x"}).model_dump()
    for field, value, line in (
        ("sequence_length", 7, "window tokens"),
        ("batch_sequences", 7, "batch windows"),
        ("corpus", own, "corpus manifest"),
    ):
        for diff in (against({f"phases.0.{field}": value}), compare(changed({f"phases.0.{field}": value}), plain)):
            assert [r.name for r in diff.differing] == [f"phase 1 {line}"]


def test_a_noise_pair_has_one_objective_and_masking_is_free_only_where_they_differ() -> None:
    """Matched runs that differ in the training seed and in what they predict: the difference is not noise alone."""
    diff = against({"phases.0.objective": "clm", "phases.0.masking": {"rate": 0.2}, "seeds.training": 2})
    assert diff.matched
    assert not diff.noise_pair
    assert diff.verdict == "matched, but trained with different training seeds (1 and 2)"
    assert against({"phases.0.objective": "clm", "phases.0.masking": {"rate": 0.2}}).verdict == "matched"
    noise = against({"seeds.training": 2})
    assert noise.verdict == "matched: a noise pair (training seeds differ: 1 and 2)"


def test_fields_of_earlier_ledgers_are_read() -> None:
    gone = {"causal_share": 0.5, "rope_base": 1e4, "validation_losses": {"source a": 1.0}}
    assert changed({f"phases.0.{name}": value for name, value in gone.items()}) == ledger("a")
