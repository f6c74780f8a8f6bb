"""The arrays that travel from the tokenizer to the predictions, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
"""Ids, positions, counts."""
Floats = NDArray[np.float32]
"""Probabilities and other scores of a model."""
Array = NDArray[Any]
"""Of a number type that whoever made it knows."""


def ints(values: ArrayLike) -> Ints:
    """Whole numbers as an array."""
    return np.asarray(values, dtype=np.int64)


def no_ints() -> Ints:
    """An array without any."""
    return np.zeros(0, dtype=np.int64)
