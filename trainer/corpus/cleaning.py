"""Declared steps that take documents out of a corpus: languages, quality, exact and near duplicates.

Language and quality are judged document by document while they are tokenised, in all processes. For duplicates each
document leaves a few 64-bit hashes beside its length: one of its words in order, and one for each band of a MinHash
signature (datasketch). Once all sources are tokenised, a document goes whose hash an earlier document has, earlier in
the order of sources and documents; so the result does not depend on the number of processes.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from biobench.core.text import Hashes, hash_of, words
from biobench.core.text import runs as word_runs
from biobench.errors import UsageError
from trainer.recipe.corpus import Cleaning, NearDuplicates, Quality


class _Prints:
    """Whole texts and runs of `n` words of a set of texts, as hashes. count: texts that have words."""

    def __init__(self, texts: Iterable[str], n: int) -> None:
        self.whole: set[int] = set()
        self.count = 0
        runs: list[Hashes] = [np.zeros(0, dtype=np.uint64)]
        for tokens in filter(None, map(words, texts)):
            self.count += 1
            self.whole.add(hash_of(" ".join(tokens)))
            runs.append(word_runs(tokens, n))
        self.runs: Hashes = np.unique(np.concatenate(runs))

    def shares(self, runs: Hashes) -> bool:
        """Whether one of these runs is among those of the set."""
        if not (runs.size and self.runs.size):
            return False
        at = np.searchsorted(self.runs, runs).clip(max=self.runs.size - 1)
        return bool((self.runs[at] == runs).any())


class Excluded:
    """The set of excluded documents. count: how many went in; hash: of the whole set, for the manifest.

    tasks: texts by the benchmark task that they come from, so that `tasks_of` can tell; they are part of the set.
    """

    def __init__(self, texts: Iterable[str], *, n: int = 13, tasks: Mapping[str, Iterable[str]] | None = None) -> None:
        self.n = n
        listed = {name: list(mine) for name, mine in (tasks or {}).items()}
        self.tasks = {name: _Prints(mine, n) for name, mine in listed.items()}
        self._all = _Prints(itertools.chain(texts, dict.fromkeys(itertools.chain.from_iterable(listed.values()))), n)
        self.count = self._all.count
        digest = hashlib.sha256(np.array(sorted(self._all.whole), dtype=np.uint64).tobytes())
        digest.update(self._all.runs.tobytes())
        self.hash = digest.hexdigest() if self.count else ""

    def tasks_of(self, text: str) -> list[str]:
        """The tasks whose documents keep `text` out; none where no task was named."""
        tokens = words(text)
        whole, runs = hash_of(" ".join(tokens)), word_runs(tokens, self.n)
        return [name for name, prints in self.tasks.items() if whole in prints.whole or prints.shares(runs)]

    def why(self, text: str) -> str | None:
        """``same`` or ``overlap`` when `text` must be left out, else None."""
        if not self.count:
            return None
        tokens = words(text)
        if hash_of(" ".join(tokens)) in self._all.whole:
            return "same"
        return "overlap" if self._all.shares(word_runs(tokens, self.n)) else None


Columns = NDArray[np.uint64]
"""(documents, columns) hashes; equal ones in a column make duplicates."""
_PACKAGES = {"near_duplicates": "datasketch", "languages": "py3langid"}


def check_packages(spec: Cleaning | None) -> None:
    """Raise UsageError where a declared step needs a package that is not installed."""
    for name, package in _PACKAGES.items():
        if spec is not None and getattr(spec, name) is not None and find_spec(package) is None:
            raise UsageError(
                f"corpus.clean.{name} needs {package}, which is not installed", hint="pip install 'biobench[corpus]'"
            )


class Cleaner:
    """The steps of a spec, ready to be applied; can be sent to other processes."""

    def __init__(self, spec: Cleaning) -> None:
        self.spec = spec
        near = spec.near_duplicates
        self._bands, self._rows = 0, 0
        if near is not None:  # those that separate pairs at the wanted similarity best
            lsh = import_module("datasketch").MinHashLSH(threshold=near.similarity, num_perm=near.permutations)
            self._bands, self._rows = int(lsh.b), int(lsh.r)
        self.columns = int(spec.exact_duplicates) + self._bands
        """Hashes of a document."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_identifier"}

    @cached_property
    def _identifier(self) -> Any:
        """A language identifier of this object's own; its languages are all that the model knows."""
        module = import_module("py3langid.langid")
        return module.LanguageIdentifier.from_model_file(module.MODEL_FILE, norm_probs=True)

    def why(self, text: str) -> str | None:
        """``language`` or ``quality`` when `text` must be left out, else None."""
        if self.spec.quality is not None and not is_good(text, self.spec.quality):
            return "quality"
        if self.spec.languages is not None:
            language, probability = self._identifier.classify(text)
            if language not in self.spec.languages or probability < self.spec.language_probability:
                return "language"
        return None

    def hashes(self, texts: Sequence[str]) -> Columns:
        """(texts, columns) what duplicates are recognised by. A text of fewer words than a run has its own hashes."""
        result = np.zeros((len(texts), self.columns), dtype=np.uint64)
        for row, text in enumerate(texts):
            tokens = words(text)
            same = hash_of(" ".join(tokens))
            if self.spec.exact_duplicates:
                result[row, 0] = same
            if self.spec.near_duplicates is not None:
                result[row, -self._bands :] = [
                    int.from_bytes(hashlib.blake2b(part, digest_size=8, salt=b"%d" % band).digest(), "little")
                    for band, part in enumerate(self._parts(tokens, same, self.spec.near_duplicates))
                ]
        return result

    def _parts(self, tokens: list[str], same: int, near: NearDuplicates) -> list[bytes]:
        """The bands of a text's MinHash signature."""
        if len(tokens) < near.ngram:
            return [b"%d" % same] * self._bands
        minhash = import_module("datasketch").MinHash(num_perm=near.permutations, seed=1)
        runs = {" ".join(tokens[i : i + near.ngram]) for i in range(len(tokens) - near.ngram + 1)}
        minhash.update_batch([run.encode("utf-8", "surrogatepass") for run in sorted(runs)])
        values: NDArray[np.uint64] = minhash.hashvalues
        return [values[at : at + self._rows].tobytes() for at in range(0, self._bands * self._rows, self._rows)]


def is_good(text: str, quality: Quality) -> bool:
    """Whether a text passes the quality rules, those of MassiveText (arXiv 2112.11446, table A1) by default."""
    tokens = text.split()
    if not quality.min_words <= len(tokens) <= quality.max_words:
        return False
    mean = sum(map(len, tokens)) / len(tokens)
    if not quality.min_word_length <= mean <= quality.max_word_length:
        return False
    if sum(any(c.isalpha() for c in token) for token in tokens) < quality.alphabetic_share * len(tokens):
        return False
    if sum(text.count(mark) for mark in ("#", "...", "…")) > quality.symbol_share * len(tokens):
        return False
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    repeated = sum(count - 1 for count in Counter(lines).values())
    return repeated <= quality.repeated_lines * len(lines)


def duplicates(hashes: Columns, *, exact: bool) -> NDArray[np.int8]:
    """Of each document: 0 stays, 1 is an exact and 2 a near duplicate of an earlier one.

    hashes: of all documents (memory-mapped); one column of them is in memory at a time. exact: whether the first
    column is that of whole documents.
    """
    verdict = np.zeros(len(hashes), dtype=np.int8)
    for number in range(hashes.shape[1]):
        repeats = pd.Series(np.ascontiguousarray(hashes[:, number])).duplicated().to_numpy()
        verdict[repeats & (verdict == 0)] = 1 if exact and number == 0 else 2
    return verdict
