"""How far two checkpoints' states have come apart, layer by layer, compared with what another seed
does.

Divergence is 1 - CKA. Every number has a jackknife interval over texts: what other texts of the
same kind would change. The noise pair (same data and order, other training seed) says what training
itself changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from biobench.core.machine import resolve_device
from trainer.analysis.similarity import Estimate, cka, gram, mean_of
from trainer.analysis.states import Sample, check_shapes, layer_states, token_ids
from trainer.ledger import FILE, intact_ledger
from trainer.ledger import compare as diff_ledgers
from trainer.model.network import read_config

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
    """One layer, group of layers, or all of them, by one estimator. Divergences and similarities
    are fractions.

    seeds: the divergence for each drawing of texts. noise: that of the noise pair, None without
    one. ratio: divergence over noise, None where the noise is not above 0.
    """

    where: str
    layers: tuple[int, ...]
    estimator: str
    similarity: float
    divergence: Value
    seeds: dict[int, float]
    noise: Value | None = None
    ratio: Value | None = None


@dataclass(frozen=True, kw_only=True)
class CkaReport:
    """What `compare` gives. tokens: of all texts; cut: how many texts were longer than
    `max_length`.
    """

    pair: Pair
    noise: Pair | None
    lines: tuple[CkaCurve, ...]
    texts: int
    per_seed: int
    available: int
    tokens: int
    cut: int
    max_length: int
    notes: tuple[str, ...]

    def of(self, where: str, estimator: str) -> CkaCurve:
        """The line of a layer ('3'), a group ('low') or 'all'."""
        return next(x for x in self.lines if x.where == where and x.estimator == estimator)

    def as_json(self) -> dict[str, Any]:
        """Plain data; an interval's end that is not bounded is None."""
        plain: dict[str, Any] = json.loads(TypeAdapter(CkaReport).dump_json(self))
        return plain | {"states": "mean"}


def compare(
    first: str | Path,
    second: str | Path,
    drawn: Callable[[], Sample],
    *,
    noise: Pair | None = None,
    max_length: int = 512,
    device: str = "auto",
    notify: Callable[[str], None] = lambda _: None,
) -> CkaReport:
    """Divergence of `first` and `second` on the drawn texts, per layer, group and overall.

    drawn: gives the texts, called once the checkpoints are known to fit. noise: a pair that differs
    by the training seed alone. notify: gets the checkpoint that is read, in words. Raises
    ModelError for checkpoints whose depth, width or tokenizer differ.
    """
    resolve_device(device)
    pairs: list[Pair] = [(str(first), str(second))]
    if noise:
        pairs.append((str(noise[0]), str(noise[1])))
    checkpoints = list(dict.fromkeys(chain.from_iterable(pairs)))
    check_shapes(checkpoints)
    sample = drawn()
    ids, cut = token_ids(checkpoints, sample.texts, max_length)

    @lru_cache(maxsize=4)
    def states_of(checkpoint: str) -> NDArray[np.float64]:
        notify(f"states of {checkpoint}")
        return layer_states(checkpoint, ids, device=device)

    tables = [_divergences(states_of(a), states_of(b), sample) for a, b in pairs]
    depth = int(read_config(first).num_hidden_layers)
    ranges: dict[str, tuple[int, ...]] = {str(layer): (layer,) for layer in range(depth)}
    ranges |= {**groups(depth), "all": tuple(range(depth))}
    lines = []
    for (name, layers), estimator in product(ranges.items(), ESTIMATORS):
        lines.append(_line(name, layers, estimator, tables))
    notes = []
    if len(sample.drawn) == 1 and sample.available <= len(sample.texts):
        notes.append(
            f"there are {sample.available} texts: all are used once and no drawing differs"
        )
    if noise:
        notes += _no_noise(*pairs[1])
    if cut:
        notes.append(f"{cut} of {len(ids)} texts are longer than {max_length} tokens and were cut")
    return CkaReport(
        pair=pairs[0],
        noise=pairs[1] if noise else None,
        lines=tuple(lines),
        texts=len(sample.texts),
        per_seed=len(next(iter(sample.drawn.values()))),
        available=sample.available,
        tokens=sum(map(len, ids)),
        cut=cut,
        max_length=max_length,
        notes=tuple(notes),
    )


def _no_noise(first: str, second: str) -> list[str]:
    """A line where the ledgers of the pair say that more than the training seed differs; none where
    one is missing.
    """
    a, b = (intact_ledger(Path(folder) / FILE) for folder in (first, second))
    if a is None or b is None or (diff := diff_ledgers(a, b)).noise_pair:
        return []
    why = diff.verdict if not diff.matched else "objectives differ, or training seeds do not"
    return [f"by their ledgers {first} and {second} are no noise pair: {why}"]


Table = list[dict[int, dict[str, Estimate]]]
"""Layer to seed to estimator to divergence."""


def _divergences(a: NDArray[np.float64], b: NDArray[np.float64], sample: Sample) -> Table:
    table: Table = []
    for of_a, of_b in zip(a, b, strict=True):
        of_layer = {}
        for seed, rows in sample.drawn.items():
            gram_a = gram(of_a[rows])
            gram_b = gram(of_b[rows])
            same = cka(gram_a, gram_b, texts=rows, total=len(sample.texts))
            of_layer[seed] = {name: same[name].complement() for name in ESTIMATORS}
        table.append(of_layer)
    return table


def groups(depth: int) -> dict[str, tuple[int, ...]]:
    """Low, mid and late layers."""
    thirds = np.array_split(np.arange(depth), 3)
    named = zip(GROUPS, thirds, strict=True)
    return {name: tuple(layers.tolist()) for name, layers in named if len(layers)}


def _line(where: str, layers: tuple[int, ...], estimator: str, tables: Sequence[Table]) -> CkaCurve:
    """The curve of some layers. tables: of the pair, and of the noise pair where there is one."""
    divergences = []
    for table in tables:
        per_seed = {}
        for seed in table[0]:
            per_seed[seed] = mean_of([table[layer][seed][estimator] for layer in layers])
        divergences.append(per_seed)
    divergence, *noise = (mean_of(list(per_seed.values())) for per_seed in divergences)
    curve = CkaCurve(
        where,
        layers,
        estimator,
        similarity=1 - divergence.value,
        divergence=Value(divergence.value, *divergence.interval()),
        seeds={seed: estimate.value for seed, estimate in divergences[0].items()},
    )
    if not noise:
        return curve
    ratio = divergence.over(noise[0])
    return replace(
        curve,
        noise=Value(noise[0].value, *noise[0].interval()),
        ratio=Value(*ratio) if ratio else None,
    )
