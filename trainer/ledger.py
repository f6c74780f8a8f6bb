"""The ledger: what a run trained on, in numbers; and two of them side by side, whether they are a matched pair.

Written to `ledger.json` beside the exported model. Free of torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, model_validator

from biobench.core.text import first_line
from biobench.errors import StoreError
from biobench.schema.strict import Strict
from trainer.recipe.fields import LATER, Growing, human

FILE = "ledger.json"
VERSION = 1


class LedgerCorpus(Growing):
    """What was read."""

    manifest_hash: str
    windows: int
    tokens: int
    sources: dict[str, float]
    """Realised share of tokens per source."""
    excluded_documents: int
    """Benchmark documents on the list of what had to stay out."""
    exclusion_hash: str
    removed_documents: int | None = None
    """Documents that were left out of the text because of that list; None in older ledgers."""
    unguarded: tuple[str, ...] | None = None
    """Benchmark tasks whose documents were not available and so not on the list; None where nobody said."""
    removed_by_task: dict[str, int] | None = Field(None, json_schema_extra=LATER)
    """Of them because of each benchmark task; one document may count for several."""
    cleaned: dict[str, int] | None = Field(None, json_schema_extra=LATER)
    """Documents that each declared step (`corpus.clean`) left out."""
    revisions: dict[str, str] = {}
    """Commit of each source that was read from the hub."""


class PhaseRecord(Growing):
    """One phase as it was trained."""

    name: str
    objective: str
    masking: dict[str, Any] | None
    tokens: int
    """Input tokens, all windows whole."""
    steps: int
    targets: int
    """Positions that were predicted."""
    first_sample: int
    last_sample: int
    """Numbers of the first and last window drawn, counted over the run."""
    order_hash: str
    """Rolling hash of the window indices in the order in which they were read."""
    epochs: float
    """Passes over the corpus that the phase amounts to."""
    peak_rate: float
    final_rate: float
    schedule: dict[str, Any]
    frozen_layers: str | None
    head: str
    data: str
    isolate_documents: bool
    flops: float
    leak: float
    """What the guard measured: exactly 0 in a causal phase."""
    reach: dict[str, tuple[int, int]]
    """Keys seen to the left and right per kind of layer; -1: all."""
    train_loss: float
    validation_loss: float | None
    kernels: dict[str, str] = {}
    """What computed the attention of each kind of layer (`trainer.model.attention`); empty in older ledgers."""
    skipped_steps: int = 0
    """Steps not taken because their gradients were a spike."""
    adopted_from: str | None = None
    """Name of the run that trained the phase, where it was not this one."""
    corpus: LedgerCorpus | None = Field(None, json_schema_extra=LATER)
    """What the phase read, where it was not the run's corpus."""
    sequence_length: int | None = Field(None, json_schema_extra=LATER)
    """Tokens per window, where the phase had its own."""
    batch_sequences: int | None = Field(None, json_schema_extra=LATER)
    """Windows per step, where the phase had its own."""

    @model_validator(mode="before")
    @classmethod
    def _earlier(cls, value: Any) -> Any:
        """Ledgers of earlier runs have fields that are gone."""
        gone = {"causal_share", "rope_base", "validation_losses"}
        return {name: part for name, part in value.items() if name not in gone} if isinstance(value, dict) else value


class LedgerBase(Strict):
    """What training started from."""

    source: str
    revision: str | None
    architecture: str
    parameters: int
    init_hash: str
    """sha256 of all weights before the first step."""
    tokenizer_hash: str


class Ledger(Strict):
    """One run."""

    version: int = VERSION
    name: str
    recipe_hash: str
    base: LedgerBase
    corpus: LedgerCorpus
    sequence_length: int
    batch_sequences: int
    step_tokens: int
    optimizer: dict[str, Any]
    precision: str
    dropout: float
    attention: str
    distributed: str
    world_sizes: tuple[int, ...]
    seeds: dict[str, int]
    phases: tuple[PhaseRecord, ...]
    tokens: int
    steps: int
    flops: float
    seconds: float
    finished: str
    """ISO 8601, UTC."""
    code_version: str
    packages: dict[str, str]
    device: str | None = None
    compiled: bool | None = None
    deterministic: bool | None = None
    micro_windows: int | None = None
    """Windows of one forward pass. These four are None in older ledgers."""
    model_hash: str | None = None
    """`biobench.schema.checkpoint.content_hash` of the exported model, by which benchmark records name it.

    None in ledgers written before it was kept.
    """


def read_ledger(path: str | Path) -> Ledger:
    """The ledger of a run: a ledger file, a run's folder or its exported model. Raises StoreError."""
    place = Path(path)
    candidates = [place] if place.is_file() else [place / FILE, place / "model" / FILE]
    file = next((f for f in candidates if f.is_file()), None)
    if file is None:
        raise StoreError("there is no ledger", hint="give the folder of a finished `biobench pretrain` run", file=place)
    try:
        return Ledger.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(
            f"the ledger is damaged: {first_line(error)}", hint="export the run again with --resume", file=file
        ) from error


def intact_ledger(file: Path) -> Ledger | None:
    """The ledger in a file; None when it is missing or damaged."""
    try:
        return read_ledger(file) if file.is_file() else None
    except StoreError:
        return None


_SHORT = 16
_HASHES = ("corpus manifest", "initial weights", "tokenizer", "sample order", "corpus")
"""Quantities that are hashes, of which so many characters are shown."""


class LedgerRow(NamedTuple):
    """One line: a quantity, its two values, whether twins must agree on it."""

    name: str
    first: str
    second: str
    binding: bool

    @property
    def equal(self) -> bool:
        """Whether both values are the same."""
        return self.first == self.second


@dataclass(frozen=True)
class LedgerDiff:
    """The comparison of two ledgers."""

    first: str
    second: str
    rows: tuple[LedgerRow, ...]
    noise_pair: bool
    """Matched, one objective per phase, another training seed: their difference is seed noise."""

    @property
    def matched(self) -> bool:
        """Whether every binding row agrees."""
        return not self.differing

    @property
    def differing(self) -> tuple[LedgerRow, ...]:
        """The binding rows that do not agree."""
        return tuple(r for r in self.rows if r.binding and not r.equal)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if not self.matched:
            return "not matched: " + ", ".join(r.name for r in self.differing)
        seeds = next((r for r in self.rows if r.name == "training seed" and not r.equal), None)
        if seeds is None:
            return "matched"
        if self.noise_pair:
            return f"matched: a noise pair (training seeds differ: {seeds.first} and {seeds.second})"
        return f"matched, but trained with different training seeds ({seeds.first} and {seeds.second})"

    def lines(self) -> list[str]:
        """The table as text lines, the verdict last. A leading ``!`` marks a binding difference, ``~`` a free one."""
        header = ("", "quantity", self.first, self.second)
        body = [
            ("!" if r.binding and not r.equal else "" if r.equal else "~", r.name, r.first, r.second) for r in self.rows
        ]
        a, b, c = (max(len(row[i]) for row in [header, *body]) for i in range(3))
        table = [f"{w:{a}}  {x:{b}}  {y:{c}}  {z}".rstrip() for w, x, y, z in [header, *body]]
        return [*table, self.verdict]


_RUN: dict[str, Callable[[Ledger], Any]] = {
    "corpus manifest": lambda run: run.corpus.manifest_hash,
    "initial weights": lambda run: run.base.init_hash,
    "tokenizer": lambda run: run.base.tokenizer_hash,
    "window tokens": lambda run: run.sequence_length,
    "batch windows": lambda run: run.batch_sequences,
    "optimiser": lambda run: run.optimizer,
    "precision": lambda run: run.precision,
    "dropout": lambda run: run.dropout,
    "data seed": lambda run: run.seeds.get("data"),
    "init seed": lambda run: run.seeds.get("init"),
    "total tokens": lambda run: run.tokens,
    "total steps": lambda run: run.steps,
    "phases": lambda run: len(run.phases),
}
"""Binding quantities of a run; the init seed only where a phase redraws its head."""
_MACHINE: dict[str, Callable[[Ledger], Any]] = {
    "total FLOPs": lambda run: f"{run.flops:.4g}",
    "training seed": lambda run: run.seeds.get("training"),
    "attention": lambda run: run.attention,
    "device": lambda run: run.device,
    "processes": lambda run: f"{', '.join(map(str, run.world_sizes))} ({run.distributed})",
    "torch": lambda run: run.packages.get("torch"),
    "compiled": lambda run: run.compiled,
    "deterministic": lambda run: run.deterministic,
    "micro-batch windows": lambda run: run.micro_windows,
    "code version": lambda run: run.code_version,
}
"""Free quantities of a run."""
_PHASE: dict[str, Callable[[PhaseRecord], Any]] = {
    "name": lambda phase: phase.name,
    "objective": lambda phase: phase.objective,
    "masking": lambda phase: phase.masking,
    "tokens": lambda phase: phase.tokens,
    "steps": lambda phase: phase.steps,
    "samples": lambda phase: f"{phase.first_sample}-{phase.last_sample}",
    "sample order": lambda phase: phase.order_hash,
    "peak rate": lambda phase: phase.peak_rate,
    "final rate": lambda phase: phase.final_rate,
    "schedule": lambda phase: phase.schedule,
    "frozen layers": lambda phase: phase.frozen_layers,
    "head": lambda phase: phase.head,
    "isolated documents": lambda phase: phase.isolate_documents,
    "targets": lambda phase: phase.targets,
    "kernels": lambda phase: phase.kernels,
    "skipped steps": lambda phase: phase.skipped_steps,
    "FLOPs": lambda phase: f"{phase.flops:.4g}",
}
_FREE = {"name", "objective", "targets", "kernels", "skipped steps", "FLOPs"}
"""Of a phase; its masking too, where the objectives differ."""
_PARTICULAR: dict[str, tuple[str, Callable[[Ledger, PhaseRecord], Any]]] = {
    "corpus": ("corpus", lambda run, phase: (phase.corpus or run.corpus).manifest_hash),
    "window tokens": ("sequence_length", lambda run, phase: phase.sequence_length or run.sequence_length),
    "batch windows": ("batch_sequences", lambda run, phase: phase.batch_sequences or run.batch_sequences),
}
"""Binding quantities that a phase may have for itself, each with its field; shown where one of two phases has it."""


def compare(a: Ledger, b: Ledger) -> LedgerDiff:
    """Compare two runs.

    Binding: corpus manifest, window length, batch, optimiser, precision, dropout, initial weights, tokenizer, data
    seed, and per phase tokens, steps, samples and their order, rates and schedule, frozen layers, head, document
    isolation, and where a phase has its own its corpus, window length and batch; the init seed where a phase redraws
    its head; the masking of a phase that has one objective in both. Shown and free: objective, masking elsewhere,
    targets, FLOPs, training seed, the init seed elsewhere (the initial weights speak for it), and the machine: device,
    processes, torch, kernels, compilation, micro-batch.
    """
    redrawn = any(p.head == "reinit" for p in (*a.phases, *b.phases))
    rows = [_row(name, get(a), get(b), name != "init seed" or redrawn) for name, get in _RUN.items()]
    same_objectives = True
    for number, (p, q) in enumerate(zip_longest(a.phases, b.phases), 1):
        alike = p is not None and q is not None and p.objective == q.objective
        same_objectives &= alike and p.masking == q.masking
        for name, value in _PHASE.items():
            first, second = (None if phase is None else value(phase) for phase in (p, q))
            binding = name not in _FREE and (name != "masking" or alike)
            rows.append(_row(f"phase {number} {name}", first, second, binding))
        for name, (field, particular) in _PARTICULAR.items():
            if any(phase is not None and getattr(phase, field) is not None for phase in (p, q)):
                first, second = (None if side[1] is None else particular(*side) for side in ((a, p), (b, q)))
                rows.append(_row(f"phase {number} {name}", first, second, True))
    rows += [_row(name, get(a), get(b), False) for name, get in _MACHINE.items()]
    matched = all(r.equal for r in rows if r.binding)
    noise = matched and same_objectives and a.seeds.get("training") != b.seeds.get("training")
    return LedgerDiff(a.name, b.name, tuple(rows), noise)


def _row(name: str, first: Any, second: Any, binding: bool) -> LedgerRow:
    """A row of two values as text; hashes are cut, unless the cut would hide that they differ."""
    texts = [_text(first), _text(second)]
    if name.endswith(_HASHES) and (texts[0] == texts[1] or texts[0][:_SHORT] != texts[1][:_SHORT]):
        texts = [text[:_SHORT] for text in texts]
    return LedgerRow(name, texts[0], texts[1], binding)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in sorted(value.items())) or "-"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000_000:
        return f"{value} ({human(value)})"
    return repr(value) if isinstance(value, float) else str(value)
