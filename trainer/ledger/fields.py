"""The ledger: what a run trained on, in numbers. Two runs are twins when theirs are equal where they must be.

Written to `ledger.json` beside the exported model. Free of torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from biobench.core.text import first_line
from biobench.errors import StoreError
from biobench.schema.checkpoint import content_hash
from biobench.schema.strict import Strict
from trainer.recipe.growing import LATER, Growing

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
