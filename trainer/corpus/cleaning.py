"""Declared steps that take documents out of a corpus: languages, quality, exact and near duplicates.

Language and quality are judged document by document while parts are made, in all processes. For duplicates each
document leaves a few 64-bit hashes beside its length: one of its words in order, and one for each band of a MinHash
signature (datasketch). Once all sources are tokenised, a document goes whose hash an earlier document has, earlier in
the order of sources and documents; so the result does not depend on the number of processes.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biobench.core.text import Hashes, hash_of, words
from biobench.core.text import runs as word_runs
from biobench.errors import UsageError
from trainer.recipe.corpus import Cleaning, Quality


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


@dataclass
class Cleaner:
    """The steps of a spec, ready to be applied; can be sent to other processes."""

    spec: Cleaning
    _bands: tuple[int, int] | None = field(default=None, init=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"spec": self.spec, "_bands": self._bands}

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

    @property
    def columns(self) -> int:
        """Hashes of a document."""
        near = self.spec.near_duplicates
        return int(self.spec.exact_duplicates) + (0 if near is None else self._layout()[0])

    def _layout(self) -> tuple[int, int]:
        """(bands, rows of one) that separate pairs at the wanted similarity best."""
        near = self.spec.near_duplicates
        assert near is not None
        if self._bands is None:
            lsh = import_module("datasketch").MinHashLSH(threshold=near.similarity, num_perm=near.permutations)
            self._bands = int(lsh.b), int(lsh.r)
        return self._bands

    def hashes(self, texts: Sequence[str]) -> Columns:
        """(texts, columns) what duplicates are recognised by. A text of fewer words than a run has its own hashes."""
        result = np.zeros((len(texts), self.columns), dtype=np.uint64)
        near = self.spec.near_duplicates
        for row, text in enumerate(texts):
            tokens = words(text)
            same = hash_of(" ".join(tokens))
            if self.spec.exact_duplicates:
                result[row, 0] = same
            if near is not None:
                bands, rows = self._layout()
                signature = self._signature(tokens, near.ngram, near.permutations)
                for band in range(bands):
                    part = (
                        signature[band * rows : (band + 1) * rows].tobytes() if signature is not None else b"%d" % same
                    )
                    digest = hashlib.blake2b(part, digest_size=8, salt=b"%d" % band).digest()
                    result[row, int(self.spec.exact_duplicates) + band] = int.from_bytes(digest, "little")
        return result

    def _signature(self, tokens: list[str], ngram: int, permutations: int) -> NDArray[np.uint64] | None:
        if len(tokens) < ngram:
            return None
        minhash = import_module("datasketch").MinHash(num_perm=permutations, seed=1)
        runs = {" ".join(tokens[i : i + ngram]) for i in range(len(tokens) - ngram + 1)}
        minhash.update_batch([run.encode("utf-8", "surrogatepass") for run in sorted(runs)])
        values: NDArray[np.uint64] = minhash.hashvalues
        return values


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


def duplicates(columns: Sequence[Columns], *, exact: bool) -> list[NDArray[np.int8]]:
    """Of each source's documents: 0 stays, 1 is an exact and 2 a near duplicate of an earlier one.

    columns: hashes of each source (memory-mapped); one column of all sources is in memory at a time.
    exact: whether the first column is that of whole documents.
    """
    counts = [len(c) for c in columns]
    verdict = np.zeros(sum(counts), dtype=np.int8)
    for number in range(columns[0].shape[1] if columns else 0):
        values = np.concatenate([c[:, number] for c in columns])
        order = np.argsort(values, kind="stable")
        values = values[order]
        repeats = np.zeros(len(values), dtype=bool)
        repeats[1:] = values[1:] == values[:-1]
        kind = 1 if exact and number == 0 else 2
        places = order[repeats]
        verdict[places[verdict[places] == 0]] = kind
    return [part.copy() for part in np.split(verdict, np.cumsum(counts)[:-1])]
