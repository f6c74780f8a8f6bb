"""The ledger: what a run trained on, in numbers; and two of them side by side, whether they are a matched pair.

Written to `ledger.json` beside the exported model. Free of torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import Field

from biobench.core.text import first_line
from biobench.errors import StoreError
from biobench.schema.checkpoint import content_hash
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
    causal_share: float | None = Field(None, json_schema_extra=LATER)
    """Part of a mixed phase's steps that were causal."""
    corpus: LedgerCorpus | None = Field(None, json_schema_extra=LATER)
    """What the phase read, where it was not the run's corpus."""
    sequence_length: int | None = Field(None, json_schema_extra=LATER)
    """Tokens per window, where the phase had its own."""
    batch_sequences: int | None = Field(None, json_schema_extra=LATER)
    """Windows per step, where the phase had its own."""
    rope_base: float | None = Field(None, json_schema_extra=LATER)
    """Base of the rotary positions of layers that see the whole window; None: that of the model's config."""
    validation_losses: dict[str, float] | None = Field(None, json_schema_extra=LATER)
    """Parts of the validation loss: ``source NAME``, ``language NAME``, ``objective NAME``."""


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


def check_weights(path: str | Path) -> None:
    """Raise StoreError where a model lies beside a ledger that describes another one.

    path: as for `read_ledger`. Ledgers that name no model, and such as lie alone, pass.
    """
    place = Path(path)
    folder = place.parent if place.is_file() else place
    model = folder if (folder / "config.json").is_file() else folder / "model"
    known = read_ledger(path).model_hash
    if known is None or not (model / "config.json").is_file():
        return
    if content_hash(model) != known:
        raise StoreError(
            "the weights are not those that the ledger beside them describes",
            hint="restore the model, or export it again with --resume",
            file=model,
        )


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


@dataclass(frozen=True)
class LedgerRow:
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
        widths = [max(len(row[i]) for row in [header, *body]) for i in range(3)]
        table = [
            "  ".join((*(cell.ljust(w) for cell, w in zip(row[:3], widths, strict=True)), row[3])).rstrip()
            for row in [header, *body]
        ]
        return [*table, self.verdict]


def compare(a: Ledger, b: Ledger) -> LedgerDiff:
    """Compare two runs.

    Binding: corpus manifest, window length, batch, optimiser, precision, dropout, initial weights, tokenizer,
    data seed, and per phase tokens, steps, samples and their order, rates and schedule, frozen layers, head,
    document isolation, and where a phase has its own its corpus, window length, batch, rotary base and share of causal
    steps; the init seed where a phase redraws its head; the masking of a phase that has one objective
    in both. Shown and free: objective, masking elsewhere, targets, FLOPs, training seed, the init seed elsewhere (the
    initial weights speak for it), and the machine: device, processes, torch, kernels, compilation, micro-batch.
    """
    redrawn = any(p.head == "reinit" for p in (*a.phases, *b.phases))
    rows = [
        _row("corpus manifest", a.corpus.manifest_hash, b.corpus.manifest_hash, short=True),
        _row("initial weights", a.base.init_hash, b.base.init_hash, short=True),
        _row("tokenizer", a.base.tokenizer_hash, b.base.tokenizer_hash, short=True),
        _row("window tokens", a.sequence_length, b.sequence_length),
        _row("batch windows", a.batch_sequences, b.batch_sequences),
        _row("optimiser", _flat(a.optimizer), _flat(b.optimizer)),
        _row("precision", a.precision, b.precision),
        _row("dropout", a.dropout, b.dropout),
        _row("data seed", a.seeds["data"], b.seeds["data"]),
        _row("init seed", a.seeds.get("init"), b.seeds.get("init"), binding=redrawn),
        _row("total tokens", a.tokens, b.tokens),
        _row("total steps", a.steps, b.steps),
        _row("phases", len(a.phases), len(b.phases)),
    ]
    for number, (p, q) in enumerate(zip_longest(a.phases, b.phases), 1):
        rows += [*_phase_rows(number, p, q), *_phase_data_rows(number, (a, p), (b, q))]
    rows += [
        _row("total FLOPs", f"{a.flops:.4g}", f"{b.flops:.4g}", binding=False),
        _row("training seed", a.seeds["training"], b.seeds["training"], binding=False),
        _row("attention", a.attention, b.attention, binding=False),
        _row("device", a.device, b.device, binding=False),
        _row("processes", _sizes(a), _sizes(b), binding=False),
        _row("torch", a.packages.get("torch"), b.packages.get("torch"), binding=False),
        _row("compiled", a.compiled, b.compiled, binding=False),
        _row("deterministic", a.deterministic, b.deterministic, binding=False),
        _row("micro-batch windows", a.micro_windows, b.micro_windows, binding=False),
        _row("code version", a.code_version, b.code_version, binding=False),
    ]
    same_objectives = all(
        p is not None and q is not None and (p.objective, p.masking) == (q.objective, q.masking)
        for p, q in zip_longest(a.phases, b.phases)
    )
    matched = all(r.equal for r in rows if r.binding)
    noise = matched and same_objectives and a.seeds["training"] != b.seeds["training"]
    return LedgerDiff(a.name, b.name, tuple(rows), noise)


def _phase_rows(number: int, p: PhaseRecord | None, q: PhaseRecord | None) -> list[LedgerRow]:
    def row(name: str, field: str, *, binding: bool = True, short: bool = False) -> LedgerRow:
        values = [None if x is None else getattr(x, field) for x in (p, q)]
        shown = [_flat(v) if isinstance(v, dict) else v for v in values]
        return _row(f"phase {number} {name}", *shown, binding=binding, short=short)

    samples = ["-" if x is None else f"{x.first_sample}-{x.last_sample}" for x in (p, q)]
    return [
        row("name", "name", binding=False),
        row("objective", "objective", binding=False),
        row("masking", "masking", binding=p is not None and q is not None and p.objective == q.objective),
        row("tokens", "tokens"),
        row("steps", "steps"),
        _row(f"phase {number} samples", *samples),
        row("sample order", "order_hash", short=True),
        row("peak rate", "peak_rate"),
        row("final rate", "final_rate"),
        row("schedule", "schedule"),
        row("frozen layers", "frozen_layers"),
        row("head", "head"),
        row("isolated documents", "isolate_documents"),
        row("targets", "targets", binding=False),
        row("kernels", "kernels", binding=False),
        row("skipped steps", "skipped_steps", binding=False),
        _row(f"phase {number} FLOPs", *("-" if x is None else f"{x.flops:.4g}" for x in (p, q)), binding=False),
    ]


def _phase_data_rows(number: int, *sides: tuple[Ledger, PhaseRecord | None]) -> list[LedgerRow]:
    """Rows for what a phase may have of its own; only where one of the two phases has it."""
    phases = [phase for _, phase in sides]

    def row(name: str, field: str, values: list[Any], *, short: bool = False) -> list[LedgerRow]:
        if all(phase is None or getattr(phase, field) is None for phase in phases):
            return []
        return [_row(f"phase {number} {name}", *values, short=short)]

    return [
        *row("corpus", "corpus", [p and (p.corpus or run.corpus).manifest_hash for run, p in sides], short=True),
        *row(
            "window tokens", "sequence_length", [p and (p.sequence_length or run.sequence_length) for run, p in sides]
        ),
        *row(
            "batch windows", "batch_sequences", [p and (p.batch_sequences or run.batch_sequences) for run, p in sides]
        ),
        *row("rotary base", "rope_base", [p and p.rope_base for _, p in sides]),
        *row("causal share", "causal_share", [p and p.causal_share for _, p in sides]),
    ]


def _row(name: str, first: Any, second: Any, *, binding: bool = True, short: bool = False) -> LedgerRow:
    """A row of two values as text; long hashes are cut, unless the cut would hide that they differ."""
    texts = [_text(first), _text(second)]
    if short and (texts[0] == texts[1] or texts[0][:_SHORT] != texts[1][:_SHORT]):
        texts = [t[:_SHORT] for t in texts]
    return LedgerRow(name, texts[0], texts[1], binding)


def _sizes(ledger: Ledger) -> str:
    """How many processes trained, one number for each start with another, and how they shared."""
    return f"{', '.join(map(str, ledger.world_sizes))} ({ledger.distributed})"


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000_000:
        return f"{value} ({human(value)})"
    return repr(value) if isinstance(value, float) else str(value)


def _flat(fields: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(fields.items())) or "-"
