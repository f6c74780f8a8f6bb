"""The ledger: what a run trained on, in numbers; and two of them side by side, whether they are a
matched pair.

Written to `ledger.json` next to the exported model. Free of torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ConfigDict

from biobench.errors import StoreError
from biobench.schema.source import later
from biobench.schema.strict import Strict
from trainer.disk import read_json
from trainer.recipe.fields import Growing

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
    """Documents that were excluded from the text because of that list; None in older ledgers."""
    unguarded: tuple[str, ...] | None = None
    """Benchmark tasks whose documents were not available and so not on the list; None where nobody
    said.
    """
    removed_by_task: dict[str, int] | None = later(None)
    """Of them because of each benchmark task; one document may count for several."""
    cleaned: dict[str, int] | None = later(None)
    """Documents that each declared step (`corpus.clean`) excluded."""
    revisions: dict[str, str] = {}
    """Commit of each source that was read from the hub."""


class PhaseRecord(Growing):
    """One phase as it was trained."""

    model_config = ConfigDict(extra="ignore")  # fields of ledgers that older versions wrote

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
    """What computed the attention of each kind of layer (`trainer.model.attention`); empty in older
    ledgers.
    """
    adopted_from: str | None = None
    """Name of the run that trained the phase, where it was not this one."""
    corpus: LedgerCorpus | None = later(None)
    """What the phase read, where it was not the run's corpus."""
    sequence_length: int | None = later(None)
    """Tokens per window, where the phase had its own."""
    batch_sequences: int | None = later(None)
    """Windows per step, where the phase had its own."""


class LedgerBase(Growing):
    """What training started from."""

    source: str
    revision: str | None
    architecture: str
    parameters: int
    init_hash: str
    """sha256 of all weights before the first step."""
    tokenizer_hash: str
    tokenizer: str | None = later(None)
    """`tokenizer.json`, or the class that read the tokenizer's other files; None in older ledgers.
    """


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
    """`biobench.schema.checkpoint.content_hash` of the exported model, by which benchmark records
    name it.

    None in ledgers written before it was kept.
    """


def read_ledger(path: str | Path) -> Ledger:
    """The ledger of a run: a ledger file, a run's folder or its exported model. Raises
    StoreError."""
    for file in (Path(path), Path(path) / FILE, Path(path) / "model" / FILE):
        if file.is_file():
            return _read(file)
    raise StoreError(
        "there is no ledger",
        hint="give the folder of a finished `biobench pretrain` run",
        file=Path(path),
    )


def intact_ledger(file: Path) -> Ledger | None:
    """The ledger in a file; None when it is missing or damaged."""
    try:
        return _read(file)
    except StoreError:
        return None


def _read(file: Path) -> Ledger:
    hint = "export the run again with --resume"
    return read_json(Ledger, file, "the ledger is damaged", hint)


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

    @property
    def mark(self) -> str:
        """``!`` for a binding difference, ``~`` for a free one."""
        if self.equal:
            return ""
        return "!" if self.binding else "~"


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
    def differing(self) -> list[LedgerRow]:
        """The binding rows that do not agree."""
        return [row for row in self.rows if row.mark == "!"]

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if self.differing:
            return "not matched: " + ", ".join(row.name for row in self.differing)
        training_seed = next(row for row in self.rows if row.name == "training seed")
        seeds = f"{training_seed.first} and {training_seed.second}"
        if training_seed.equal:
            return "matched"
        if self.noise_pair:
            return f"matched: a noise pair (training seeds differ: {seeds})"
        return f"matched, but trained with different training seeds ({seeds})"

    def lines(self) -> list[str]:
        """The table as text lines, the verdict last. A leading ``!`` marks a binding difference,
        ``~`` a free one.
        """
        table = [("", "quantity", self.first, self.second)]
        for row in self.rows:
            table.append((row.mark, row.name, row.first, row.second))
        columns = list(zip(*table, strict=True))
        marks, names, values = (max(map(len, column)) for column in columns[:3])
        lines = []
        for mark, name, value_a, value_b in table:
            line = f"{mark:{marks}}  {name:{names}}  {value_a:{values}}  {value_b}"
            lines.append(line.rstrip())
        return [*lines, self.verdict]


_RUN = (
    "sequence_length",
    "batch_sequences",
    "optimizer",
    "precision",
    "dropout",
    "device",
    "code_version",
)
_PHASE = (
    "name",
    "objective",
    "masking",
    "tokens",
    "steps",
    "first_sample",
    "last_sample",
    "peak_rate",
    "final_rate",
    "schedule",
    "frozen_layers",
    "head",
    "isolate_documents",
    "targets",
    "kernels",
)
_OWN = ("sequence_length", "batch_sequences")
"""What a phase may have of its own in place of the run's."""
_FREE = (
    *("total FLOPs", "training seed", "init seed", "device", "processes", "code_version"),
    *("name", "objective", "targets", "kernels", "FLOPs"),
)
"""What may differ in a matched pair: of the run, and of a phase."""


def _quantities(run: Ledger) -> dict[tuple[str, str], Any]:
    """What is compared, by the words before its name (``phase 1 ``, nothing of the run) and name.
    Hashes are cut.
    """
    of_run: dict[str, Any] = {
        "corpus manifest": run.corpus.manifest_hash[:16],
        "initial weights": run.base.init_hash[:16],
        "tokenizer": run.base.tokenizer_hash[:16],
        "data seed": run.seeds.get("data"),
        "training seed": run.seeds.get("training"),
        "init seed": run.seeds.get("init"),
        "total tokens": run.tokens,
        "total steps": run.steps,
        "total FLOPs": f"{run.flops:.4g}",
        "phases": len(run.phases),
        "processes": f"{', '.join(map(str, run.world_sizes))} ({run.distributed})",
        **_fields(run, _RUN),
    }
    quantities = {("", name): value for name, value in of_run.items()}
    for number, phase in enumerate(run.phases, 1):
        for name, value in _of_phase(phase).items():
            quantities[f"phase {number} ", name] = value
    return quantities


def _of_phase(phase: PhaseRecord) -> dict[str, Any]:
    """What is compared of a phase; corpus, window and batch only where it has its own."""
    quantities = _fields(phase, _PHASE)
    quantities["sample order"] = phase.order_hash[:16]
    quantities["FLOPs"] = f"{phase.flops:.4g}"
    if phase.corpus is not None:
        quantities["corpus manifest"] = phase.corpus.manifest_hash[:16]
    for name, value in _fields(phase, _OWN).items():
        if value is not None:
            quantities[name] = value
    return quantities


def _fields(record: Strict, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def compare(a: Ledger, b: Ledger) -> LedgerDiff:
    """Compare two runs: every quantity binds but the free ones.

    Free are objectives with what follows from them (masking where the objectives differ, targets,
    FLOPs), the training seed, the init seed (the initial weights speak for it), and the machine.
    """
    of_a = _quantities(a)
    of_b = _quantities(b)
    rows = []
    for phase, name in of_a | of_b:
        binds = name not in _FREE
        if name == "masking":
            binds = of_a.get((phase, "objective")) == of_b.get((phase, "objective"))
        # what a phase has not of its own is the run's
        value_a = of_a.get((phase, name), of_a.get(("", name)))
        value_b = of_b.get((phase, name), of_b.get(("", name)))
        label = f"{phase}{name}".replace("_", " ")
        rows.append(LedgerRow(label, _text(value_a), _text(value_b), binds))
    diff = LedgerDiff(first=a.name, second=b.name, rows=tuple(rows), noise_pair=False)
    is_same_training = _objectives(a) == _objectives(b)
    seeds_differ = a.seeds.get("training") != b.seeds.get("training")
    return replace(diff, noise_pair=diff.matched and is_same_training and seeds_differ)


def _objectives(run: Ledger) -> list[tuple[str, dict[str, Any] | None]]:
    return [(phase.objective, phase.masking) for phase in run.phases]


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in sorted(value.items())) or "-"
    return str(value)
