"""Keeping the benchmark's documents out of the pretraining text.

A document is left out when its normalised text equals an excluded one, or when it shares a run of n words
(13 by default) with one: the usual contamination rule, on the words and runs of `biobench.core.text`.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from biobench.core.text import Hashes, hash_of, words
from biobench.core.text import runs as word_runs


class Excluded:
    """The set of excluded documents. count: how many went in; hash: of the whole set, for the manifest.

    tasks: texts by the benchmark task that they come from, so that `tasks_of` can tell; they are part of the set.
    """

    def __init__(self, texts: Iterable[str], *, n: int = 13, tasks: Mapping[str, Iterable[str]] | None = None) -> None:
        self.n = n
        self.tasks = {name: list(listed) for name, listed in (tasks or {}).items()}
        texts = itertools.chain(texts, dict.fromkeys(itertools.chain.from_iterable(self.tasks.values())))
        whole: set[int] = set()
        runs: list[Hashes] = []
        self.count = 0
        for text in texts:
            tokens = words(text)
            if not tokens:
                continue
            self.count += 1
            whole.add(hash_of(" ".join(tokens)))
            runs.append(word_runs(tokens, n))
        self._whole = whole
        self._runs: Hashes = np.unique(np.concatenate(runs)) if runs else np.zeros(0, dtype=np.uint64)
        digest = hashlib.sha256(np.array(sorted(whole), dtype=np.uint64).tobytes())
        digest.update(self._runs.tobytes())
        self.hash = digest.hexdigest() if self.count else ""
        self._of_whole: dict[int, int] = {}
        self._of_runs: NDArray[np.uint64] = np.zeros((len(self._runs), 0), dtype=np.uint64)
        self._attribute()

    def _attribute(self) -> None:
        """Note which tasks each text and each run comes from, one bit a task."""
        self._of_runs = np.zeros((len(self._runs), -(-len(self.tasks) // 64)), dtype=np.uint64)
        for number, listed in enumerate(self.tasks.values()):
            block, bit = divmod(number, 64)
            for text in listed:
                tokens = words(text)
                whole = hash_of(" ".join(tokens))
                self._of_whole[whole] = self._of_whole.get(whole, 0) | 1 << number
                runs = word_runs(tokens, self.n)
                self._of_runs[np.searchsorted(self._runs, runs), block] |= np.uint64(1 << bit)
        self.tasks = {name: [] for name in self.tasks}  # the texts are not needed any more

    def tasks_of(self, text: str) -> list[str]:
        """The tasks whose documents keep `text` out; none where no task was named."""
        tokens = words(text)
        bits = self._of_whole.get(hash_of(" ".join(tokens)), 0)
        runs = word_runs(tokens, self.n)
        if runs.size and self._runs.size and self.tasks:
            at = np.searchsorted(self._runs, runs).clip(max=self._runs.size - 1)
            for block, part in enumerate(np.bitwise_or.reduce(self._of_runs[at[self._runs[at] == runs]], axis=0)):
                bits |= int(part) << 64 * block
        return [name for number, name in enumerate(self.tasks) if bits >> number & 1]

    def why(self, text: str) -> str | None:
        """``same`` or ``overlap`` when `text` must be left out, else None."""
        if not self.count:
            return None
        tokens = words(text)
        if hash_of(" ".join(tokens)) in self._whole:
            return "same"
        runs = word_runs(tokens, self.n)
        if runs.size and self._runs.size:
            at = np.searchsorted(self._runs, runs).clip(max=self._runs.size - 1)
            if bool((self._runs[at] == runs).any()):
                return "overlap"
        return None
