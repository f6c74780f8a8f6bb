"""Documents that a corpus excludes: the benchmark's own, and with `corpus.clean` exact and near
duplicates.

For duplicates each document leaves a few 64-bit hashes next to its length: one of its words in
order, and one for each band of a MinHash signature (datasketch). Once all sources are tokenised, a
document goes whose hash an earlier document has, earlier in the order of sources and documents; so
the result does not depend on the number of processes.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import count

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from biobench.core.word_runs import Hashes, hash_of, words
from biobench.core.word_runs import runs as word_runs
from biobench.errors import UsageError
from trainer.recipe.corpus import Cleaning, NearDuplicates


class _Prints:
    """Whole texts and runs of `n` words of a set of texts, as hashes. count: texts that have
    words."""

    def __init__(self, texts: Iterable[str], n: int) -> None:
        self.n = n
        self.whole: set[int] = set()
        self.count = 0
        runs: list[Hashes] = [np.zeros(0, dtype=np.uint64)]
        for tokens in filter(None, map(words, texts)):
            self.count += 1
            self.whole.add(hash_of(" ".join(tokens)))
            runs.append(word_runs(tokens, n))
        self.runs: Hashes = np.unique(np.concatenate(runs))

    def why(self, text: str) -> str | None:
        """``same`` for a text of the set, ``overlap`` for one that shares a run of words with
        one."""
        if not self.count:
            return None
        tokens = words(text)
        if hash_of(" ".join(tokens)) in self.whole:
            return "same"
        runs = word_runs(tokens, self.n)
        if not (runs.size and self.runs.size):
            return None
        at = np.searchsorted(self.runs, runs).clip(max=self.runs.size - 1)
        return "overlap" if (self.runs[at] == runs).any() else None


NO_TASKS: Mapping[str, Sequence[str]] = {}


class Excluded:
    """The set of excluded documents. count: how many went in; hash: of the whole set, for the
    manifest.

    tasks: texts by the benchmark task that they come from, so that `tasks_of` can tell; they are
    part of the set.
    """

    def __init__(
        self, texts: Iterable[str], *, n: int = 13, tasks: Mapping[str, Sequence[str]] = NO_TASKS
    ) -> None:
        self.n = n
        of_tasks = itertools.chain.from_iterable(tasks.values())
        self.tasks = {name: _Prints(of_task, n) for name, of_task in tasks.items()}
        self._all = _Prints(itertools.chain(texts, dict.fromkeys(of_tasks)), n)
        self.count = self._all.count
        whole = np.array(sorted(self._all.whole), dtype=np.uint64)
        digest = hashlib.sha256(whole.tobytes())
        digest.update(self._all.runs.tobytes())
        self.hash = digest.hexdigest() if self.count else ""

    def tasks_of(self, text: str) -> list[str]:
        """The tasks whose documents keep `text` out; none where no task was named."""
        return [name for name, prints in self.tasks.items() if prints.why(text)]

    def why(self, text: str) -> str | None:
        """``same`` or ``overlap`` when `text` is excluded, else None."""
        return self._all.why(text)


Columns = NDArray[np.uint64]
"""(documents, columns) hashes; equal ones in a column make duplicates."""


def check_packages(spec: Cleaning | None) -> None:
    """Raise UsageError where near duplicates are to go and datasketch is not installed."""
    if spec is not None and spec.near_duplicates is not None and find_spec("datasketch") is None:
        raise UsageError(
            "corpus.clean.near_duplicates needs datasketch, which is not installed",
            hint="pip install 'biobench[corpus]'",
        )


class Fingerprints:
    """The hashes that duplicates are recognised by; can be sent to other processes. columns: hashes
    of a document.
    """

    def __init__(self, spec: Cleaning) -> None:
        self.spec = spec
        near = spec.near_duplicates
        self._bands = 0
        self._rows = 0
        if near is not None:  # those that separate pairs at the wanted similarity best
            index = import_module("datasketch").MinHashLSH(near.similarity, near.permutations)
            self._bands, self._rows = int(index.b), int(index.r)
        self.columns = int(spec.exact_duplicates) + self._bands

    def of(self, texts: Sequence[str]) -> Columns:
        """(texts, columns) hashes. All bands of a text with fewer words than a run are of its words
        in order.
        """
        result = np.zeros((len(texts), self.columns), dtype=np.uint64)
        near = self.spec.near_duplicates
        if not self.columns:
            return result
        for row, text in enumerate(texts):
            tokens = words(text)
            in_order = hash_of(" ".join(tokens))
            result[row] = in_order
            if near is not None:
                bands = [b"%d" % in_order] * self._bands
                if len(tokens) >= near.ngram:
                    bands = self._bands_of(tokens, near)
                result[row, -self._bands :] = list(map(_hash_of_band, bands, count()))
        return result

    def _bands_of(self, tokens: Sequence[str], near: NearDuplicates) -> list[bytes]:
        """The bands of the signature of a text's runs of words."""
        starts = range(len(tokens) - near.ngram + 1)
        runs = {" ".join(tokens[start : start + near.ngram]) for start in starts}
        minhash = import_module("datasketch").MinHash(num_perm=near.permutations, seed=1)
        minhash.update_batch([run.encode("utf-8", "surrogatepass") for run in runs])
        signature = minhash.hashvalues[: self._bands * self._rows]
        return [band.tobytes() for band in np.split(signature, self._bands)]


def _hash_of_band(content: bytes, band: int) -> int:
    """64 bits; the same content in another band has another hash."""
    digest = hashlib.blake2b(content, digest_size=8, salt=b"%d" % band).digest()
    return int.from_bytes(digest, "little")


def duplicates(hashes: Columns, *, exact: bool) -> NDArray[np.int8]:
    """Of each document: 0 stays, 1 is an exact and 2 a near duplicate of an earlier one.

    hashes: of all documents (memory-mapped); one column of them is in memory at a time. exact:
    whether the first column is that of whole documents.
    """
    verdict = np.zeros(len(hashes), dtype=np.int8)
    sorts = np.full(hashes.shape[1], 2, dtype=np.int8)
    sorts[: int(exact)] = 1
    for number, sort in enumerate(sorts):
        column = pd.Series(np.ascontiguousarray(hashes[:, number]))
        verdict[column.duplicated().to_numpy() & (verdict == 0)] = sort
    return verdict
