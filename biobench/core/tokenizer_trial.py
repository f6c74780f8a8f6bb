"""A stranger's `tokenizer.json` reads a few texts in a process of its own, before it is believed.

A kilobyte of replacements makes gigabytes of a sentence, and the library that reads the file ends
the process where memory does not suffice; so memory, time and the number of tokens are limited.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from biobench.core.checkpoint_safety import MOST_ADDED
from biobench.core.processes import limit_process
from biobench.errors import ModelError

_HOME = Path(__file__).resolve().parents[2]
"""The folder in which the package lies."""
SENTENCE = (
    "The patient had 12 mg of aspirin; la fièvre a duré 3 jours. "
    "the patient was treated for a disease of the heart; le patient a une maladie"
)
"""Any tokenizer that was trained on text knows a piece of it."""
PROBES = (
    SENTENCE,
    "Le garçon, âgé de 7 ans, a reçu 2,5 mg/kg de méthotrexate le 12/03/2021 ; où est l'œdème ?",
    "L’hépatite C (génotype 1b) : ALAT 3,2×N, IL-6 à 40 pg/mL -- naïf de traitement.",
    "Anti-PD-1 therapy (nivolumab, 240 mg q2w) in non-small-cell lung cancer: p<0.05, n=1,024.",
    "β-catenin/TCF-4 binds BRCA1 5'-UTR; Hb 9.1 g/dL, 37.5°C, CO₂ ½.",
    "  Two  spaces,\ttab\nand a new line. ÉLECTROCARDIOGRAMME ",
)
"""Texts that a tokenizer and its file must read alike: both languages, accents, capitals, digits,
hyphens, blanks, and words of biomedicine.
"""
_LETTERS = "".join(map(chr, [*range(0x20, 0x250), *range(0x370, 0x400), *range(0x2010, 0x2040)]))
"""The signs of Latin and Greek texts: a replacement may wait for any of them."""
SECONDS = 30
"""Of processor time; a vocabulary of 250,000 entries takes 1 s."""
MEMORY = 2**30
"""Bytes of address space beyond what the process has before it reads the file."""
_MEMORY_PER_BYTE = 32
"""Bytes of address space that a byte of the file may take besides."""
_TOKENS_PER_SIGN = 8
_TOKENS_BESIDE = 100
"""Bytes make at most four tokens of a sign, and a decomposed sign few more; frames have a few."""


def try_tokenizer(file: Path) -> None:
    """Raises ModelError where `tokenizer.json` needs more than the limits for the probe texts, or
    breaks the library. A file that cannot be read at all passes: who loads it says so.
    """
    state = file.stat()
    problem = _problem(file.resolve(), state.st_mtime_ns, state.st_size)
    if problem is not None:
        hint = "take its normalizer, pre_tokenizer or added_tokens apart, or use another checkpoint"
        raise ModelError(f"the tokenizer is not safe to use: {problem}", hint=hint, file=file)


@lru_cache(maxsize=64)
def _problem(file: Path, changed: int, size: int) -> str | None:
    """What a trial found; None where nothing. changed, size: of the file, which may be replaced."""
    # No module of the current folder, and no thread that reserves memory.
    environment = os.environ | {"PYTHONPATH": str(_HOME), "TOKENIZERS_PARALLELISM": "0"}
    memory = MEMORY + _MEMORY_PER_BYTE * size
    command = [sys.executable, "-P", "-m", "biobench.core.tokenizer_trial", str(file), str(memory)]
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10 * SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"it takes more than {10 * SECONDS} s to read a few sentences"
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace").strip() or None
    return f"a few sentences take more than {SECONDS} s or {memory / 2**30:.1f} GiB, or break it"


def _trial(file: Path) -> str | None:
    """What is wrong with the tokens of the probe texts; None where nothing is."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception:  # tokenizers raises no other class; who loads the file says what is wrong
        return None
    tokenizer.no_padding()  # transformers lets neither happen, whatever the file says
    tokenizer.no_truncation()
    added = len(tokenizer.get_added_tokens_decoder())
    if added > MOST_ADDED:
        return f"it adds {added:,} tokens to its vocabulary, at most {MOST_ADDED:,} are taken"
    for text in ("", *PROBES, _LETTERS):
        try:
            number = len(tokenizer.encode(text).ids)
        except MemoryError:
            raise
        except Exception:  # as above, without a token for unknown words
            return None
        if number > _TOKENS_PER_SIGN * len(text) + _TOKENS_BESIDE:
            return f"it makes {number:,} tokens of {len(text)} characters"
    return None


if __name__ == "__main__":
    limit_process(int(sys.argv[2]), SECONDS)
    print(_trial(Path(sys.argv[1])) or "")
