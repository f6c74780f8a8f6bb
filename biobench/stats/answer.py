"""An estimate with every noise that it is subject to.

The interval is the widest over the noises and the p value the largest, so that a noise which is
larger, or one more noise, never makes an answer surer. All intervals share their centre: the widest
leaves out zero exactly where the largest p value lies below 1 - level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scipy import special

from biobench.stats.types import LEVEL, Estimand, Interval, is_zero

POWER = 0.8
"""Share of repetitions in which a detectable difference is shown."""
#: Degrees of freedom above which the noncentral t is computed as for these: it is the normal then.
MANY_DF = 1e4


@dataclass(frozen=True)
class Noise:
    """One source of noise of an estimate.

    name: what may vary, in words. se: standard error, in the unit of the estimate. df: its degrees
    of freedom, infinite where the standard error is exact.
    """

    name: str
    se: float
    df: float

    def half_width(self, level: float) -> float:
        """Half the width of the t interval of this level."""
        if self.se == 0:
            return 0.0
        # what stats.t.ppf comes to, without checks of arguments that take a hundred times as long
        return float(special.stdtrit(self.df, (1 + level) / 2)) * self.se

    def p_beyond(self, distance: float) -> float:
        """Chance that the t lies further than `distance` (in the estimate's unit) on one side."""
        if is_zero(self.se, 0.0):
            return 0.5 if is_zero(abs(distance), 0.0) else float(distance < 0)
        return float(special.stdtr(self.df, -distance / self.se))


@dataclass(frozen=True)
class Answer:
    """An estimate and its noises (at least one), in the unit of the scores handed in."""

    estimate: float
    noises: tuple[Noise, ...]
    estimand: Estimand

    @property
    def p(self) -> float:
        """Two-sided p of "the true value is zero", the largest over the noises."""
        return min(1.0, 2 * self._largest(lambda noise: noise.p_beyond(abs(self.estimate))))

    @property
    def p_not_above(self) -> float:
        """One-sided p of "the true value is zero or less", the largest over the noises."""
        return self._largest(lambda noise: noise.p_beyond(self.estimate))

    def widest(self, level: float) -> Noise:
        """The noise whose interval of this level is the widest."""
        return max(self.noises, key=lambda noise: noise.half_width(level))

    def interval(self, level: float = LEVEL) -> Interval:
        """The widest of the t intervals of this level."""
        noise = self.widest(level)
        half = noise.half_width(level)
        return Interval(
            low=self.estimate - half,
            high=self.estimate + half,
            level=level,
            method=f"t, widest of the noises: {noise.name}",
            estimand=self.estimand,
        )

    def interval_as_wide_as(self, half_width: float) -> Interval:
        """The interval of this half width, at the level that it has. half_width: above zero."""
        return self.interval(1 - 2 * self._largest(lambda noise: noise.p_beyond(half_width)))

    def p_outside(self, margin: float) -> float:
        """p of "the true value lies outside ± margin", the largest over the noises.

        Two one-sided t tests (Schuirmann 1987). At p <= alpha the interval of level 1 - 2 alpha
        lies within the margin. margin: above zero, in the unit of the estimate.
        """
        room = margin - abs(self.estimate)
        return self._largest(lambda noise: noise.p_beyond(room))

    def detectable(self, *, alpha: float = 0.05) -> float | None:
        """The true difference that a two-sided test at `alpha` finds with `POWER`.

        In the unit of the estimate, by the noncentral t; the largest over the noises. None where
        none of them varies.
        """
        sizes = []
        for noise in self.noises:
            df = min(noise.df, MANY_DF)
            threshold = special.stdtrit(df, 1 - alpha / 2)
            if noise.se > 0:
                sizes.append(noise.se * float(special.nctdtrinc(df, 1 - POWER, threshold)))
        return max(sizes, default=None)

    def _largest(self, p_value: Callable[[Noise], float]) -> float:
        return max(p_value(noise) for noise in self.noises)
