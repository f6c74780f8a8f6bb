"""Where the variance of scores comes from, out of a crossed design: tasks, head initialisations, data orders, rest.

Restricted maximum likelihood of a mixed model (statsmodels `MixedLM`), heads and orders crossed within each task.
Intervals are generalised pivots of the balanced design (Weerahandi 1993, J. Am. Stat. Assoc. 88): few levels leave a
variance badly known, and they say so.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from biobench.stats.means import pooled_df
from biobench.stats.types import FloatArray, StatsInputError

Part = Literal["task", "head initialisation", "data order", "rest", "test sampling"]

#: Draws of the pivots.
DRAWS = 20_000


@dataclass(frozen=True)
class Component:
    """One source. sd: standard deviation of one run's score from it, in the scores' unit; low, high: its interval.

    share: of the variance of one run's score on one task, None for the tasks themselves.
    """

    part: Part
    sd: float
    low: float
    high: float
    share: float | None


def variance_components(
    scores: ArrayLike,
    test_variances: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Component, ...]:
    """Components of scores (tasks, heads, orders, repeats), every cell filled, two heads and two orders or more.

    test_variances: (tasks,) squared standard errors of another test set, of each task's mean over all its runs;
    groups: (tasks,) how many groups of documents they come from. The spread between tasks, told from two tasks on,
    is without them. Rest: what head and order do together, dropout, and with several repeats the training seed.
    Raises StatsInputError where the design is not crossed.
    """
    x = np.asarray(scores, dtype=np.float64)
    if x.ndim != 4 or min(x.shape[1:3], default=0) < 2 or 0 in x.shape or not np.isfinite(x).all():
        raise StatsInputError(
            f"scores of shape {x.shape} are no crossed design",
            hint="give (tasks, heads, orders, repeats) with two heads and two orders or more, every run there",
        )
    rng = np.random.default_rng(seed)
    means, freedom, counts = _mean_squares(x)
    drawn = means * freedom / rng.chisquare(freedom, size=(DRAWS, 4))
    fitted, pivots = _fitted(x), np.maximum(_solved(drawn, counts), 0.0)
    sampling: tuple[float, FloatArray] | None = None
    if test_variances is not None and groups is not None:
        variances, sizes = np.asarray(test_variances, dtype=np.float64), np.asarray(groups, dtype=np.float64)
        total = float(variances.mean())
        df = pooled_df([(float(v) / len(variances), float(n) - 1) for v, n in zip(variances, sizes, strict=True)])
        sampling = total, total * df / rng.chisquare(df, DRAWS)
    within = fitted[1] + fitted[2] + fitted[3] + (0.0 if sampling is None else sampling[0])
    ends = (1 - level) / 2, (1 + level) / 2

    def component(part: Part, variance: float, draws: FloatArray, *, shared: bool = True) -> Component:
        low, high = np.sqrt(np.quantile(draws, ends))
        share = variance / within if shared and within > 0 else None
        return Component(part, float(np.sqrt(variance)), float(low), float(high), share)

    result = []
    if len(x) > 1:
        noise = (0.0, np.zeros(DRAWS)) if sampling is None else sampling
        between = max(fitted[0] - noise[0], 0.0)
        result.append(component("task", between, np.maximum(pivots[:, 0] - noise[1], 0.0), shared=False))
    names: tuple[Part, ...] = ("head initialisation", "data order", "rest")
    result += [component(name, fitted[i], pivots[:, i]) for i, name in enumerate(names, 1)]
    if sampling is not None:
        result.append(component("test sampling", *sampling))
    return tuple(result)


def _mean_squares(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean squares of task, head, order and rest, their degrees of freedom, and observations behind a mean of each.

    With one task its mean square and degrees of freedom stand for nothing (0 and 1).
    """
    tasks, heads, orders, repeats = x.shape
    task, head, order = x.mean(axis=(1, 2, 3)), x.mean(axis=(2, 3)), x.mean(axis=(1, 3))
    counts = np.array([heads * orders * repeats, orders * repeats, heads * repeats, 1.0])
    squares = np.array(
        [
            counts[0] * ((task - x.mean()) ** 2).sum(),
            counts[1] * ((head - task[:, None]) ** 2).sum(),
            counts[2] * ((order - task[:, None]) ** 2).sum(),
            0.0,
        ]
    )
    squares[3] = max(((x - task[:, None, None, None]) ** 2).sum() - squares[1] - squares[2], 0.0)
    freedom = np.array([tasks - 1.0, tasks * (heads - 1.0), tasks * (orders - 1.0), 0.0])
    freedom[3] = x.size - tasks - freedom[1] - freedom[2]
    freedom[0] = max(freedom[0], 1.0)
    return squares / freedom, freedom, counts


def _solved(means: FloatArray, counts: FloatArray) -> FloatArray:
    """Variances of task, head, order and rest whose expected mean squares are these, (..., 4)."""
    task, head, order, rest = np.moveaxis(means, -1, 0)
    return np.stack(
        [(task - head - order + rest) / counts[0], (head - rest) / counts[1], (order - rest) / counts[2], rest], axis=-1
    )


def _fitted(x: FloatArray) -> tuple[float, float, float, float]:
    """Variances of task, head, order and rest by restricted maximum likelihood; that of a single task is 0.

    Begins at the moments, which are the answer where all of them are positive; a source whose moment is not lies on
    the border and is left out of the model, as its likelihood is highest at zero.
    """
    import pandas as pd
    from statsmodels.regression.mixed_linear_model import MixedLM, MixedLMParams
    from statsmodels.tools.sm_exceptions import ConvergenceWarning

    scale = float(x.std())
    if scale == 0:
        return 0.0, 0.0, 0.0, 0.0
    y = (x - x.mean()) / scale
    means, _, counts = _mean_squares(y)
    moments = dict(zip(("task", "head", "order", "rest"), map(float, _solved(means, counts)), strict=True))
    floor = max(moments.pop("rest"), 1e-9)
    if len(x) == 1:
        moments["task"] = 0.0
    ratios = {name: value / floor for name, value in moments.items() if value > 1e-9}
    parts = [name for name in ("head", "order") if name in ratios]
    task, head, order, _ = np.indices(x.shape).reshape(4, -1)
    frame = pd.DataFrame({"y": y.ravel(), "task": task, "head": head, "order": order})
    variances = dict.fromkeys(("task", "head", "order"), 0.0)
    if not ratios:
        return 0.0, 0.0, 0.0, float(y.var(ddof=1)) * scale**2
    formula = {name: f"0 + C({name})" for name in parts} or None
    grouped = {"re_formula": "1"} if "task" in ratios else {}
    model = MixedLM.from_formula("y ~ 1", frame, groups="task", vc_formula=formula, **grouped)
    start = MixedLMParams.from_components(
        fe_params=np.zeros(1),
        cov_re=np.array([[ratios["task"]]]) if grouped else np.zeros((0, 0)),
        vcomp=np.array([ratios[name] for name in parts]),
    )
    with warnings.catch_warnings():
        # variances near zero lie near the border of what may be, of which the optimiser warns
        for category in (ConvergenceWarning, UserWarning, RuntimeWarning):
            warnings.simplefilter("ignore", category)
        result = model.fit(reml=True, start_params=start)
    variances |= dict(zip(parts, map(float, result.vcomp), strict=True))
    if grouped:
        variances["task"] = float(result.cov_re.iloc[0, 0])
    head_variance, order_variance = (variances[name] * scale**2 for name in ("head", "order"))
    return variances["task"] * scale**2, head_variance, order_variance, float(result.scale) * scale**2
