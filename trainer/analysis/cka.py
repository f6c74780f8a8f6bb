"""How far two checkpoints' states have come apart, layer by layer, beside what another seed does.

Divergence is 1 - CKA. Every number stands with a jackknife interval over texts: what other texts of the same
kind would change. The noise pairs (same data and order, other training seed) say what training itself changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from biobench.core.machine import resolve_device
from biobench.errors import StoreError, UsageError
from trainer.analysis.similarity import Estimate, Similarity, cka, gram, mean_of, token_similarity
from trainer.analysis.states import (
    Kind,
    Sample,
    check_dtype,
    check_shapes,
    config_of,
    layer_states,
    token_ids,
)
from trainer.ledger import FILE, intact_ledger
from trainer.ledger import compare as diff_ledgers

ENDINGS = (".svg", ".png", ".html", ".json")


def check_ending(path: str | Path) -> Path:
    """The path itself. Raises UsageError unless a figure can be written under that name."""
    file = Path(path)
    if file.suffix.lower() not in ENDINGS:
        raise UsageError(f"no figure can be written as '{file.name}'", hint="end the name in " + ", ".join(ENDINGS))
    return file


def save(chart: Any, path: str | Path) -> Path:
    """Write an Altair chart; SVG and PNG are drawn without a browser. Raises UsageError, StoreError."""
    file = check_ending(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        chart.save(str(file), **({"scale_factor": 2} if file.suffix.lower() == ".png" else {}))
    except OSError as error:
        raise StoreError(f"the figure cannot be written: {error}", hint="give another place", file=file) from error
    return file


GROUPS = ("low", "mid", "late")
"""Thirds of the layers; with 22 layers these are the paper's 0-7, 8-14 and 15-21."""
ESTIMATORS = ("biased", "debiased")

Pair = tuple[str, str]


@dataclass(frozen=True)
class Value:
    """A fraction with its 95% interval over texts."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class CkaCurve:
    """One layer, group of layers, or all of them, by one estimator. Divergences and similarities are fractions.

    seeds: the divergence for each drawing of texts. noise: mean of the noise pairs, None without one.
    noise_pairs: each of them. ratio: divergence over noise, None where the noise is not above 0.
    """

    where: str
    layers: tuple[int, ...]
    estimator: str
    similarity: float
    divergence: Value
    seeds: dict[int, float]
    noise: Value | None = None
    noise_pairs: tuple[float, ...] = ()
    ratio: Value | None = None


@dataclass(frozen=True)
class CkaPoint:
    """One pair of checkpoints of a series: the divergence of all layers and of each group."""

    pair: Pair
    lines: tuple[CkaCurve, ...]


@dataclass(frozen=True)
class CkaReport:
    """What `compare` gives."""

    pair: Pair
    noise: tuple[Pair, ...]
    lines: tuple[CkaCurve, ...]
    series: tuple[CkaPoint, ...]
    texts: int
    per_seed: int
    available: int
    tokens: int
    cut: int
    max_length: int
    states: Kind
    dtype: str
    notes: tuple[str, ...]

    def of(self, where: str, estimator: str) -> CkaCurve:
        """The line of a layer ('3'), a group ('low') or 'all'."""
        return next(x for x in self.lines if x.where == where and x.estimator == estimator)

    def as_json(self) -> dict[str, Any]:
        """Plain data; an interval's end that is not bounded is None."""
        plain: dict[str, Any] = _finite(asdict(self))
        return plain


def compare(
    first: str | Path,
    second: str | Path,
    sample: Sample,
    *,
    noise: Sequence[tuple[str | Path, str | Path]] = (),
    series: Sequence[tuple[str | Path, str | Path]] = (),
    states: Kind = "mean",
    max_length: int = 512,
    device: str = "auto",
    dtype: str = "float32",
    notify: Callable[[str], None] = lambda _: None,
) -> CkaReport:
    """Divergence of `first` and `second` on the drawn texts, per layer, group and overall.

    noise: pairs that differ by the training seed alone. series: earlier pairs, in order, as for the
    checkpoints of a decay. states: ``tokens`` takes all tokens of all drawn texts, and so one drawing alone.
    notify: told which checkpoint is read. Raises ModelError for checkpoints whose depth, width or tokenizer
    differ, UsageError for an unknown dtype and for several drawings with ``tokens``.
    """
    if states == "tokens" and len(sample.drawn) > 1:
        raise UsageError("all tokens are taken from one drawing of texts", hint="give --seeds one seed")
    check_dtype(dtype)
    resolve_device(device)
    main: Pair = (str(first), str(second))
    noises = [(str(a), str(b)) for a, b in noise]
    points = [(str(a), str(b)) for a, b in series]
    checkpoints = list(dict.fromkeys(c for pair in (main, *noises, *points) for c in pair))
    check_shapes(checkpoints)
    ids, cut = token_ids(checkpoints, sample.texts, max_length)
    cached: dict[str, NDArray[np.float64]] = {}
    uses = [c for pair in (main, *noises, *points) for c in pair]

    def states_of(checkpoint: str) -> NDArray[np.float64]:
        if checkpoint not in cached:
            notify(f"states of {checkpoint}")
            kind: Literal["mean", "token"] = "token" if states == "token" else "mean"
            cached[checkpoint] = layer_states(checkpoint, ids, kind=kind, device=device, dtype=getattr(torch, dtype))
        return cached[checkpoint]

    def release(pair: Pair) -> None:
        for checkpoint in pair:
            uses.remove(checkpoint)
            if checkpoint not in uses:
                cached.pop(checkpoint, None)

    tables = []
    for pair in (main, *noises, *points):
        if states == "tokens":
            notify(f"all tokens of {pair[0]} and {pair[1]}")
            layers = token_similarity(*pair, ids, device=device, dtype=getattr(torch, dtype))
            tables.append(_one_drawing(layers, next(iter(sample.drawn))))
            continue
        tables.append(_divergences(states_of(pair[0]), states_of(pair[1]), sample))
        release(pair)
    depth = int(config_of(first).num_hidden_layers)
    main_table, beside, later = tables[0], tables[1 : 1 + len(noises)], tables[1 + len(noises) :]
    notes = []
    if len(sample.drawn) == 1 and sample.available <= len(sample.texts):
        notes.append(f"there are {sample.available} texts: all are used once and no drawing differs")
    notes += _no_noise(noises)
    if cut:
        notes.append(f"{cut} of {len(ids)} texts are longer than {max_length} tokens and were cut")
    return CkaReport(
        main,
        tuple(noises),
        _lines(main_table, beside, depth),
        tuple(
            CkaPoint(pair, tuple(x for x in _lines(table, [], depth) if x.where in (*GROUPS, "all")))
            for pair, table in zip(points, later, strict=True)
        ),
        len(sample.texts),
        len(next(iter(sample.drawn.values()))),
        sample.available,
        sum(map(len, ids)),
        cut,
        max_length,
        states,
        dtype,
        tuple(notes),
    )


def _no_noise(pairs: Sequence[Pair]) -> list[str]:
    """A line for each pair whose ledgers say that more than the training seed differs; none where they are missing."""
    notes = []
    for one, other in pairs:
        ledgers = [intact_ledger(Path(folder) / FILE) for folder in (one, other)]
        if ledgers[0] is None or ledgers[1] is None:
            continue
        diff = diff_ledgers(ledgers[0], ledgers[1])
        if not diff.noise_pair:
            why = diff.verdict if not diff.matched else "objectives differ, or training seeds do not"
            notes.append(f"by their ledgers {one} and {other} are no noise pair: {why}")
    return notes


Table = dict[str, list[dict[int, Estimate]]]
"""Estimator to layer to seed to divergence."""


def _divergences(a: NDArray[np.float64], b: NDArray[np.float64], sample: Sample) -> Table:
    table: Table = {name: [] for name in ESTIMATORS}
    for layer in range(len(a)):
        by_seed: dict[str, dict[int, Estimate]] = {name: {} for name in ESTIMATORS}
        for seed, rows in sample.drawn.items():
            both = cka(gram(a[layer, rows]), gram(b[layer, rows]), texts=rows, total=len(sample.texts))
            by_seed["biased"][seed] = both.biased.complement()
            by_seed["debiased"][seed] = both.debiased.complement()
        for name in ESTIMATORS:
            table[name].append(by_seed[name])
    return table


def _one_drawing(layers: Sequence[Similarity], seed: int) -> Table:
    return {name: [{seed: getattr(layer, name).complement()} for layer in layers] for name in ESTIMATORS}


def groups(depth: int) -> dict[str, tuple[int, ...]]:
    """Low, mid and late layers."""
    return {
        name: tuple(int(x) for x in part)
        for name, part in zip(GROUPS, np.array_split(np.arange(depth), 3), strict=True)
        if len(part)
    }


def _lines(pair: Table, beside: Sequence[Table], depth: int) -> tuple[CkaCurve, ...]:
    places = {str(layer): (layer,) for layer in range(depth)} | groups(depth) | {"all": tuple(range(depth))}
    return tuple(_line(where, layers, name, pair, beside) for where, layers in places.items() for name in ESTIMATORS)


def _line(where: str, layers: tuple[int, ...], name: str, pair: Table, beside: Sequence[Table]) -> CkaCurve:
    seeds = pair[name][0].keys()
    per_seed = {seed: mean_of([pair[name][layer][seed] for layer in layers]) for seed in seeds}
    divergence = mean_of(list(per_seed.values()))
    each = [mean_of([t[name][layer][seed] for layer in layers for seed in seeds]) for t in beside]
    noise = mean_of(each) if each else None
    ratio = divergence.over(noise) if noise else None
    return CkaCurve(
        where,
        layers,
        name,
        1 - divergence.value,
        _value(divergence),
        {seed: e.value for seed, e in per_seed.items()},
        _value(noise) if noise else None,
        tuple(e.value for e in each),
        Value(*ratio) if ratio else None,
    )


def _value(estimate: Estimate) -> Value:
    return Value(estimate.value, *estimate.interval())


def _finite(value: Any) -> Any:
    """The same data with None for what JSON has no number for."""
    if isinstance(value, dict):
        return {name: _finite(inside) for name, inside in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inside) for inside in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
