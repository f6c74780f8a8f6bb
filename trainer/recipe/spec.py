"""Recipe: what a pretraining run is, declared in YAML and nothing else.

A detour, its masked twin, a reversed order, an alternation and a decoder control are all lists of phases.
All durations are tokens. JSON Schema: `trainer.api.recipe_schema`.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from biobench.schema.strict import Strict, plain
from biobench.schema.task import fail
from trainer.recipe.growing import LATER, Growing
from trainer.recipe.quantities import Tokens, TokensOrNone, human


class TokenizerTraining(Strict):
    """A byte-level BPE tokenizer trained on the corpus itself, for models from scratch."""

    vocabulary: int = Field(ge=300)
    """Entries, special tokens included."""


class AddedTokens(Strict):
    """Words that a checkpoint's vocabulary gains. Exactly one of tokens and file."""

    tokens: list[str] | None = None
    file: str | None = None
    """One word a line, below corpus.root."""
    initial: Literal["pieces", "mean"] = "pieces"
    """What their rows begin as: the mean of the rows of the tokens that spelled them before, or of all rows."""

    @model_validator(mode="after")
    def _one(self) -> AddedTokens:
        if (self.tokens is None) == (self.file is None):
            raise fail("added_tokens needs either tokens or a file", "write `added_tokens: {tokens: [glycémie]}`")
        wrong = next((t for t in self.tokens or [] if not t or any(c.isspace() for c in t)), None)
        if wrong is not None:
            raise fail(f"the added token '{wrong}' is not one word", "write words without spaces")
        return self


class Base(Growing):
    """What training starts from: a checkpoint, or a config for fresh weights."""

    model: str | None = None
    """Hub id or folder of a checkpoint with its prediction head."""
    revision: str | None = None
    config: dict[str, Any] | None = None
    """transformers config fields with `model_type`, for fresh weights; null takes an inherited field away."""
    tokenizer: str | TokenizerTraining | None = None
    """Hub id or folder, or a tokenizer to be trained; default: the checkpoint's own."""

    added_tokens: AddedTokens | None = Field(None, json_schema_extra=LATER)
    """Words that the checkpoint's vocabulary gains before training."""

    @field_validator("config", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        return plain(value)

    @model_validator(mode="after")
    def _one(self) -> Base:
        if (self.model is None) == (self.config is None):
            raise fail("base needs either a model or a config", "write `model: ID_OR_FOLDER`, or `config: {...}`")
        if self.config is not None:
            if "model_type" not in self.config:
                raise fail("base.config has no model_type", "add `model_type: modernbert`")
            if self.tokenizer is None:
                raise fail("fresh weights need a tokenizer", "write `tokenizer: ID_OR_FOLDER` or a training")
        elif isinstance(self.tokenizer, TokenizerTraining):
            raise fail("a checkpoint keeps its own tokenizer", "leave base.tokenizer out")
        if self.added_tokens is not None and self.model is None:
            raise fail(
                "base.added_tokens without a checkpoint", "add the words to the tokenizer of fresh weights itself"
            )
        return self


class EmbeddedText(Strict):
    """The synthetic bilingual clinical sentences that come with the package."""

    documents: int = Field(ge=10)
    seed: int = 7
    languages: Literal["both", "en", "fr"] = "both"


class CorpusSource(Growing):
    """One part of the mixture. Exactly one of embedded, path and hub says where its text is."""

    id: str
    language: str | None = Field(None, json_schema_extra=LATER)
    """Language of its text, fr say: validation losses are also given for each language."""
    embedded: EmbeddedText | None = None
    path: str | None = None
    """File, folder or glob below corpus.root."""
    hub: str | None = None
    """Dataset repository on the model hub, with `revision` and `split`."""
    name: str | None = Field(None, json_schema_extra=LATER)
    """Configuration of that dataset, a language say."""
    revision: str | None = None
    """Commit, tag or branch; the commit that it stands for is kept in the manifest and the ledger."""
    split: str = "train"
    format: Literal["auto", "text", "lines", "jsonl", "csv", "tsv", "parquet", "arrow"] = "auto"
    """text: a file is a document; lines: a line is one; auto: by the file's ending (.txt is text), before .gz or .zst
    where the file is compressed."""
    field: str = "text"
    """Column or key that holds the text (jsonl, csv, tsv, parquet, arrow, hub)."""
    share: float | None = Field(None, gt=0, le=1)
    """Part of the corpus's tokens; met by repeating documents of all sources but the most plentiful one."""
    repeat: float | None = Field(None, gt=0)
    """How often each document is read; 2.5 reads half of them a third time. Default 1."""

    @field_validator("id")
    @classmethod
    def _id(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
            raise fail(f"'{value}' is not a source id", "use letters, digits, '.', - and _; it names files")
        return value

    @model_validator(mode="after")
    def _one(self) -> CorpusSource:
        if sum(x is not None for x in (self.embedded, self.path, self.hub)) != 1:
            raise fail(f"source '{self.id}' needs exactly one of embedded, path and hub", "say where its text is")
        if self.share is not None and self.repeat is not None:
            raise fail(f"source '{self.id}' has a share and a repeat", "keep one of the two")
        return self


class Exclusion(Strict):
    """Documents that must not be trained on: the benchmark's own."""

    files: list[str] = []
    """Text files or JSON lines (key `text`) below corpus.root whose documents are left out."""
    ngram: int = Field(13, ge=5, le=50)
    """A document that shares a run of this many words with an excluded one is left out."""


class Quality(Strict):
    """Rules that a document must meet; the defaults are those of MassiveText (arXiv 2112.11446, table A1)."""

    min_words: int = Field(50, ge=1)
    max_words: int = Field(100_000, ge=1)
    min_word_length: float = Field(3, ge=0)
    """Least mean number of characters of a word."""
    max_word_length: float = Field(10, gt=0)
    alphabetic_share: float = Field(0.8, ge=0, le=1)
    """Least part of words that hold a letter."""
    symbol_share: float = Field(0.1, ge=0)
    """Most hashes and ellipses for each word."""
    repeated_lines: float = Field(0.3, ge=0, le=1)
    """Most lines that are repetitions of another, as a part of all lines."""


class NearDuplicates(Strict):
    """Documents that share most of their runs of words with an earlier one, by MinHash."""

    similarity: float = Field(0.8, gt=0, lt=1)
    """Jaccard similarity of the sets of word runs from which on a document is more likely to go than to stay."""
    ngram: int = Field(5, ge=1, le=20)
    permutations: int = Field(128, ge=16, le=512)


class Cleaning(Strict):
    """Steps that take documents out, in this order: quality, language, exact and near duplicates.

    The benchmark's documents are kept out before all of them. A document goes by the first step that it fails.
    """

    quality: Quality | None = None
    languages: list[str] | None = None
    """ISO 639-1 codes of what stays, as py3langid tells them."""
    language_probability: float = Field(0.5, ge=0, le=1)
    """Least probability of the language."""
    exact_duplicates: bool = False
    """Whether a document goes whose words an earlier one of any source has in the same order."""
    near_duplicates: NearDuplicates | None = None


class CorpusSpec(Growing):
    """Text to shards: tokenise, end each document, shuffle documents, join, cut into windows."""

    sources: list[CorpusSource]
    sequence_length: int = Field(ge=16)
    """Tokens per window."""
    root: str = "."
    """Folder that relative paths of sources and excluded files start from."""
    cache: str | None = None
    """Folder of built corpora, from root; default: `corpora` beside the runs. Text under an agreement stays with it."""
    seed: int = 42
    """Shuffles the documents."""
    start_token: Literal["none", "cls"] = "none"
    """Token before each document, besides the end token after it."""
    held_out: float = Field(0.01, ge=0, lt=0.5)
    """Part of the documents kept for validation loss."""
    shard_tokens: Tokens = 500_000_000
    exclude: Exclusion = Exclusion()
    clean: Cleaning | None = Field(None, json_schema_extra=LATER)
    """Which documents are left out besides."""
    most_repeats: float | None = Field(None, ge=1, json_schema_extra=LATER)
    """How often a document is read at most, whatever repeat and share ask for; the realised shares are recorded."""

    @model_validator(mode="after")
    def _sources(self) -> CorpusSpec:
        if not self.sources:
            raise fail("the corpus has no sources", "list at least one")
        ids = [s.id for s in self.sources]
        if len(set(ids)) < len(ids):
            raise fail(f"two corpus sources have the id '{max(ids, key=ids.count)}'", "give each its own id")
        shares = [s.share for s in self.sources if s.share is not None]
        if shares and (len(shares) < len(ids) or not math.isclose(sum(shares), 1.0, abs_tol=1e-6)):
            raise fail("the shares of the corpus sources do not sum to 1", "give every source a share, or none")
        return self


class Seeds(Strict):
    """Where chance enters, each with its own seed."""

    data: int = 42
    """Order of the windows; twins share it."""
    training: int = 17
    """Masks and dropout; a noise twin changes it."""
    init: int = 17
    """Fresh weights and re-initialised heads."""


class Batch(Growing):
    """Windows per optimiser step, and per forward pass on one process."""

    sequences: int = Field(ge=1)
    micro: int | None = Field(None, ge=1)
    """Windows per forward pass; smaller saves memory and changes nothing. Default: a process's whole share."""


class Optimizer(Growing):
    """AdamW, decoupled as in the paper: weights shrink by ``rate / peak * weight_decay`` each step."""

    learning_rate: float = Field(gt=0)
    beta1: float = Field(0.9, ge=0, lt=1)
    beta2: float = Field(0.98, ge=0, lt=1)
    epsilon: float = Field(1e-6, gt=0)
    weight_decay: float = Field(1e-5, ge=0)
    """None on biases and one-dimensional parameters."""
    gradient_clip: float | None = Field(None, gt=0)
    """Largest global gradient norm; null: not clipped."""
    kind: Literal["adamw", "stable_adamw", "muon"] = Field("adamw", json_schema_extra=LATER)
    """stable_adamw: AdamW whose step of a tensor is divided by the root mean square of gradient over expectation where
    that is above 1; muon: orthogonalised momentum for the layers' matrices, AdamW for all else."""
    z_loss: float = Field(0.0, ge=0, json_schema_extra=LATER)
    """Weight of the squared log of each position's normaliser, added to the training loss, not to validation."""
    skip_spikes: float | None = Field(None, gt=1, json_schema_extra=LATER)
    """A step is skipped, and told, when its gradient norm is this many times the median of the latest hundred."""


class Masking(Growing):
    """Which tokens a masked phase hides and how."""

    rate: float = Field(gt=0, lt=1)
    """Expected part of the tokens that are hidden; at the phase's start where `final_rate` is given."""
    final_rate: float | None = Field(None, gt=0, lt=1, json_schema_extra=LATER)
    """The rate changes linearly from step to step and reaches this one with the phase's last; validation keeps `rate`.
    """
    unit: Literal["token", "word", "span"] = Field("token", json_schema_extra=LATER)
    """What is hidden together: single tokens, all tokens of a word, or runs of whole words (SpanBERT, arXiv
    1907.10529)."""
    span_words: float = Field(3.8, ge=1, le=8, json_schema_extra=LATER)
    """Mean of a span's geometric length in words before it is cut at ten; SpanBERT has 3.8 after the cut."""
    rule: Literal["80-10-10", "mask"] = "80-10-10"
    """80-10-10: mask token, random token, unchanged; mask: always the mask token."""
    special: Literal["protected", "maskable"] = "protected"
    """Whether end-of-document and other special tokens can be chosen."""


class Schedule(Strict):
    """Learning rate over a phase: warm-up, then `shape` down to `final` of the peak."""

    shape: Literal["constant", "1-sqrt", "linear", "cosine"] = "constant"
    warmup: TokensOrNone = 0
    cooldown: Tokens | None = None
    """Tokens at the phase's end over which the rate falls; default: all after the warm-up."""
    final: float = Field(0.1, ge=0, le=1)
    peak: float = Field(1.0, gt=0)
    """Multiple of the optimiser's learning rate that this phase peaks at."""


class Freeze(Strict):
    """Layers that a phase leaves bit for bit as they are; embeddings and head always train."""

    layers: str
    """Ranges of layer numbers from 0, ends included: ``0-7`` or ``0,2,8-14``."""

    @field_validator("layers")
    @classmethod
    def _parse(cls, value: str) -> str:
        parse_layers(value)
        return value


class PhaseCorpus(Strict):
    """A phase's text: other sources, or other shares of the recipe's sources."""

    sources: list[CorpusSource] | None = None
    shares: dict[str, float] | None = None
    """Source id to its part of the tokens; a source that is not named is left out."""

    @model_validator(mode="after")
    def _one(self) -> PhaseCorpus:
        if (self.sources is None) == (self.shares is None):
            raise fail("a phase's corpus needs either sources or shares", "write `shares: {SOURCE: 0.8, OTHER: 0.2}`")
        return self


Direction = Literal["clm", "mlm"]
"""Objective of one step."""


class Phase(Growing):
    """One stretch of training under one objective."""

    name: str
    objective: Literal["clm", "mlm", "mixed"]
    """mixed: whole steps are causal or masked, spread evenly by `causal_share`."""
    tokens: Tokens
    causal_share: float | None = Field(None, gt=0, lt=1, json_schema_extra=LATER)
    """Part of a mixed phase's steps that are causal."""
    corpus: PhaseCorpus | None = Field(None, json_schema_extra=LATER)
    """Text of this phase alone; default: the recipe's corpus."""
    sequence_length: int | None = Field(None, ge=16, json_schema_extra=LATER)
    """Tokens per window in this phase; default: corpus.sequence_length."""
    batch: Batch | None = Field(None, json_schema_extra=LATER)
    """Windows per step in this phase; default: the recipe's batch."""
    rope_base: float | None = Field(None, gt=1, json_schema_extra=LATER)
    """Base of the rotary positions in layers that see the whole window, from this phase on."""
    masking: Masking | None = None
    schedule: Schedule = Schedule()
    freeze: Freeze | None = None
    head: Literal["keep", "reinit"] = "keep"
    data: Literal["continue", "restart"] = "continue"
    """continue: windows follow those of the phase before; restart: from the first again."""
    isolate_documents: bool = False
    """Whether attention stops at document ends inside a window, and no target crosses one."""

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", value):
            raise fail(f"'{value}' is not a phase name", "use lower-case letters, digits, - and _")
        return value

    @model_validator(mode="after")
    def _fits(self) -> Phase:
        if self.objective != "clm" and self.masking is None:
            raise fail(f"phase '{self.name}' is {self.objective} without masking", "add `masking: {rate: 0.3}`")
        if (self.objective == "mixed") != (self.causal_share is not None):
            raise fail(
                f"phase '{self.name}' is {self.objective} with causal_share {self.causal_share}",
                "give causal_share, 0.5 say, in phases whose objective is mixed, and in no others",
            )
        if self.objective == "clm" and self.masking is not None:
            raise fail(f"phase '{self.name}' is clm with masking", "leave masking out")
        if self.schedule.warmup >= self.tokens:
            raise fail(
                f"phase '{self.name}' warms up over {human(self.schedule.warmup)} of {human(self.tokens)} tokens",
                "make warmup shorter than the phase",
            )
        cooldown, room = self.schedule.cooldown, self.tokens - self.schedule.warmup
        if cooldown is not None and self.schedule.shape == "constant":
            raise fail(f"phase '{self.name}' has a cooldown and a constant rate", "add a shape, 1-sqrt say")
        if cooldown is not None and cooldown > room:
            raise fail(
                f"phase '{self.name}' cools down over {human(cooldown)} of the {human(room)} tokens after its warm-up",
                "make cooldown shorter, or leave it out to cool down over all of them",
            )
        return self

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The objectives of its steps."""
        return ("clm", "mlm") if self.objective == "mixed" else (self.objective,)

    def direction(self, step: int) -> Direction:
        """The objective of a step (from 0); a mixed phase's causal steps are spread evenly, its first is masked."""
        if self.objective != "mixed":
            return self.objective
        assert self.causal_share is not None
        return "clm" if math.floor((step + 1) * self.causal_share) > math.floor(step * self.causal_share) else "mlm"


class Engine(Growing):
    """How the machine does it; changes time and memory, not what is trained (within rounding)."""

    precision: Literal["auto", "bf16", "fp32"] = "auto"
    """auto: bf16 on a GPU, fp32 on a CPU."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    distributed: Literal["ddp", "fsdp2"] = "ddp"
    compile: Literal["auto"] | bool = "auto"
    """auto: on a GPU. It takes minutes at a phase's start."""
    deterministic: bool = Field(False, json_schema_extra=LATER)
    """Whether a GPU computes the same bits every time, at a cost in speed; a CPU with a number of threads does anyway.
    Only with it is a resume on a GPU promised to be the uninterrupted run bit for bit."""
    activation_checkpointing: bool = False
    residual: Literal["fp32", "bf16"] = Field("fp32", json_schema_extra=LATER)
    """In bf16: the type of the states between layers. bf16 halves what they take and the traffic of norms, and rounds
    their sums; weights, norms, loss and moments stay in float32."""
    gather: Literal["fp32", "bf16"] = Field("fp32", json_schema_extra=LATER)
    """With fsdp2 in bf16: the type in which processes send weights to each other. bf16 halves that traffic and computes
    all else with rounded weights too; gradients are summed in float32 either way."""
    dropout: float = Field(0.0, ge=0, lt=1)

    def compiles(self, device: str) -> bool:
        """Whether layers are compiled on a kind of device (``cpu``, ``cuda``)."""
        return device == "cuda" if self.compile == "auto" else self.compile


class Checkpoints(Growing):
    """When the state is saved."""

    every: Tokens | None = None
    """Tokens between checkpoints; each phase's end is always saved."""
    keep: int = Field(2, ge=1)
    """Newest checkpoints kept, besides those at phase ends."""
    keep_phases: bool = True
    """Whether the optimiser state at each phase's end is kept, so that others can branch from it."""
    background: bool = Field(False, json_schema_extra=LATER)
    """Whether checkpoints between phase ends are written while training continues; they take as much host memory as
    weights and moments, and count once they are whole, which is looked at when the next is due. Not with `export`."""
    export: bool = False
    """Whether each checkpoint that `every` asks for is also written as a folder for from_pretrained."""


class TrainingProbe(Strict):
    """Small scores of the model in training: a frozen probe on open tasks, on their validation documents."""

    every: Tokens
    """Tokens between two probes; each phase's end is always probed."""
    tasks: list[str]
    """Ids of benchmark tasks."""
    documents: int = Field(200, ge=20)
    """Training documents of each task."""
    seed: int = 42

    @field_validator("tasks")
    @classmethod
    def _tasks(cls, value: list[str]) -> list[str]:
        if not value:
            raise fail("the probe has no tasks", "name at least one, demo_ner say")
        return value


class Logging(Growing):
    """What is written while training."""

    every: int = Field(10, ge=1)
    """Steps between lines of metrics.jsonl."""
    evaluate: Tokens | None = None
    """Tokens between validation losses; each phase's end is always evaluated."""
    tracker: Literal["none", "tensorboard", "wandb", "trackio"] = "none"
    probe: TrainingProbe | None = Field(None, json_schema_extra=LATER)
    """Scores of small benchmark probes while training."""


class Reuse(Strict):
    """Phases that another run has trained already: they are adopted, not repeated."""

    run: str
    """Folder of that run."""
    through: str
    """Name of the last phase that is adopted."""


class Recipe(Strict):
    """A pretraining run."""

    name: str
    description: str = Field("", json_schema_extra={"descriptive": True})
    base: Base
    corpus: CorpusSpec
    phases: list[Phase]
    batch: Batch
    optimizer: Optimizer
    seeds: Seeds = Seeds()
    engine: Engine = Engine()
    checkpoints: Checkpoints = Checkpoints()
    logging: Logging = Logging()
    reuse: Reuse | None = None

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
            raise fail(f"'{value}' is not a recipe name", "use letters, digits, '.', - and _; it names a folder")
        return value

    @model_validator(mode="after")
    def _phases(self) -> Recipe:
        if not self.phases:
            raise fail("the recipe has no phases", "list at least one")
        names = [p.name for p in self.phases]
        if len(set(names)) < len(names):
            raise fail(f"two phases are called '{max(names, key=names.count)}'", "give each its own name")
        if self.reuse is not None and self.reuse.through not in names[:-1]:
            raise fail(
                f"reuse.through '{self.reuse.through}' is not a phase before the last",
                "name one of: " + ", ".join(names[:-1]),
            )
        for phase in self.phases:
            self.corpus_of(phase)
        return self

    @property
    def step_tokens(self) -> int:
        """Tokens per optimiser step, in phases that do not say otherwise."""
        return self.batch.sequences * self.corpus.sequence_length

    def length_of(self, phase: Phase) -> int:
        """Tokens per window of a phase."""
        return phase.sequence_length or self.corpus.sequence_length

    def batch_of(self, phase: Phase) -> Batch:
        """The batch of a phase."""
        return phase.batch or self.batch

    def step_tokens_of(self, phase: Phase) -> int:
        """Tokens per optimiser step of a phase."""
        return self.batch_of(phase).sequences * self.length_of(phase)

    def corpus_of(self, phase: Phase) -> CorpusSpec:
        """What a phase reads: the recipe's corpus with the phase's own sources, shares and window length."""
        spec = self.corpus.model_copy(update={"sequence_length": self.length_of(phase)})
        if phase.corpus is None:
            return spec
        sources = phase.corpus.sources
        if sources is None:
            shares = phase.corpus.shares or {}
            known = {source.id: source for source in self.corpus.sources}
            unknown = [name for name in shares if name not in known]
            if unknown:
                raise fail(
                    f"phase '{phase.name}' gives a share to '{unknown[0]}', which is no source of the corpus",
                    "name one of: " + ", ".join(known),
                )
            sources = [
                CorpusSource.model_validate(
                    known[name].model_dump(exclude={"repeat", "share"}, exclude_defaults=True) | {"share": share}
                )
                for name, share in shares.items()
            ]
        # validated anew: shares must sum to 1, ids must differ
        return CorpusSpec.model_validate(spec.model_dump() | {"sources": [s.model_dump() for s in sources]})

    @property
    def corpora(self) -> list[CorpusSpec]:
        """All corpora of the recipe, each once: its own, then those of phases that differ."""
        specs = [self.corpus]
        for spec in map(self.corpus_of, self.phases):
            if spec not in specs:
                specs.append(spec)
        return specs

    def rope_base_at(self, index: int) -> float | None:
        """Base of the rotary positions in phase number `index`; None for that of the model's config."""
        bases = [p.rope_base for p in self.phases[: index + 1] if p.rope_base is not None]
        return bases[-1] if bases else None

    @property
    def total_steps(self) -> int:
        """Optimiser steps of all phases."""
        return sum(self.steps(p) for p in self.phases)

    @property
    def total_tokens(self) -> int:
        """Tokens of all phases, in whole steps."""
        return sum(self.steps(p) * self.step_tokens_of(p) for p in self.phases)

    def steps(self, phase: Phase) -> int:
        """Optimiser steps of a phase: the fewest that reach its tokens."""
        return math.ceil(phase.tokens / self.step_tokens_of(phase))

    def every(self, tokens: int | None, phase: Phase) -> int | None:
        """Steps of a phase from one thing that happens every `tokens` tokens to the next, at least 1; None: never."""
        return None if tokens is None else max(1, round(tokens / self.step_tokens_of(phase)))

    def exports_at(self, step: int, phase: Phase) -> bool:
        """Whether the checkpoint after `step` steps of a phase is exported: one that `every` asks for.

        The state saved where a run is told to stop is not, so that a resumed run ends with the same exports.
        """
        every = self.every(self.checkpoints.every, phase) if self.checkpoints.export else None
        return every is not None and step > 0 and step % every == 0


def parse_layers(text: str) -> list[int]:
    """``0-7`` or ``0,2,8-14`` to layer numbers. Raises ValueError."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise fail(f"layers '{text}' are not understood", "write 0-7 or 0,2,8-14")
        numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return sorted(numbers)
