"""Reading a checkpoint's tokenizer, for fine-tuning and pretraining alike.

`tokenizer.json`, where there is one, is the truth. transformers builds the class that
`tokenizer_config.json` or the model's type names, and passes over what the file says of
normalisation, splitting and the kind of model; so both read the same probe texts, and where they
differ the file itself is taken. What only a class can read is compared with nothing; the record
names the class.
"""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast
from transformers.utils.hub import cached_file

from biobench.core.checkpoint_safety import TOKENIZER_FILES, check_tokenizer
from biobench.core.files import broken_file
from biobench.core.layouts import layout_hint
from biobench.core.text import first_line
from biobench.core.tokenizer_trial import PROBES, SENTENCE, try_tokenizer
from biobench.core.vocabulary import sampled_texts, unreachable
from biobench.errors import ModelError

FILE, SETTINGS = "tokenizer.json", "tokenizer_config.json"
ROLES = ("pad", "bos", "eos", "unk", "cls", "sep", "mask")
"""Special tokens that a tokenizer names."""

_ASKED = re.compile(r"need to install (\w[\w-]*)|pip install (\w[\w-]*)|requires the (\w+) library")
"""How the library's classes of tokenizers ask for a package."""
_QUIET: dict[str, Any] = {
    "_raise_exceptions_for_gated_repo": False,
    "_raise_exceptions_for_missing_entries": False,
    "_raise_exceptions_for_connection_errors": False,
}
"""A missing file is no error."""
_RARE = "\ue000"
"""A character without a meaning, which hardly any vocabulary holds."""
_DROPOUT = f"BPE dropout of {FILE} is switched off: it gives a text other tokens each time"


class ReadTokenizer(NamedTuple):
    """A tokenizer and what a record says of it.

    maker: `tokenizer.json`, or the class that read the other files. notes: what a user must know,
    a line each. changes: in what the ids are not those of the library's class, for the keys of
    runs; empty where they are the same.
    """

    tokenizer: PreTrainedTokenizerBase
    maker: str
    notes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


def load_tokenizer(source: str | Path, *, revision: str | None = None) -> PreTrainedTokenizerBase:
    """The tokenizer of a checkpoint (hub id or folder); see `read_tokenizer`."""
    return _read(source, revision, trust_remote_code=False).tokenizer


def read_tokenizer(
    source: str | Path, *, revision: str | None = None, trust_remote_code: bool = False
) -> ReadTokenizer:
    """The tokenizer of a checkpoint (hub id or folder), compared with its `tokenizer.json`.

    Raises ModelError where there is none, where it knows no word, and where it draws its tokens at
    random and cannot be told not to.
    """
    read = _read(source, revision, trust_remote_code)
    lines = unreachable(read.tokenizer, by_file=FILE in read.maker)
    return read._replace(notes=(*read.notes, *lines))


def probe_ids(tokenizer: PreTrainedTokenizerBase) -> NDArray[np.int64]:
    """Ids that stand in texts, each once, without special tokens."""
    rows = tokenizer(list(PROBES), add_special_tokens=False, verbose=False)["input_ids"]
    ids = {number for row in rows for number in row}
    return np.array(sorted(ids - set(tokenizer.all_special_ids)), dtype=np.int64)


def _read(source: str | Path, revision: str | None, trust_remote_code: bool) -> ReadTokenizer:
    _gate(source, revision)
    try:
        library: PreTrainedTokenizerBase | None = AutoTokenizer.from_pretrained(
            str(source), revision=revision, trust_remote_code=trust_remote_code
        )
        error: Exception | None = None
    # Not narrower: tokenizers raises the bare class for a file that is not whole, the checkpoint's
    # own code and transformers' converters raise anything, and the file may be read all the same.
    except Exception as raised:
        library, error = None, raised
    file = None
    if not _made_by_code(source, revision, library, trust_remote_code):
        file = _file(source, FILE, revision)
    if library is None and file is None:
        raise _not_loaded(source, error) from error
    if library is None or (file is not None and type(library) is not PreTrainedTokenizerFast):
        read = _compared(source, revision, library, error)
    else:
        maker = type(library).__name__ if file is None else FILE
        read = _without_dropout(ReadTokenizer(library, maker))
    _check(source, read.tokenizer)
    return read


def _gate(source: str | Path, revision: str | None) -> None:
    """Refuse files that would lead the library elsewhere, fill memory or take for ever."""
    files = [_file(source, name, revision) for name in (*TOKENIZER_FILES, FILE)]
    for folder in {file.parent for file in files if file is not None} | {Path(source)}:
        if folder.is_dir():
            check_tokenizer(folder)
    if files[-1] is not None:
        try_tokenizer(files[-1])


def _made_by_code(
    source: str | Path,
    revision: str | None,
    library: PreTrainedTokenizerBase | None,
    trust_remote_code: bool,
) -> bool:
    """Whether code in the checkpoint makes the tokenizer, or would if it were trusted: it is then
    the truth.
    """
    if library is not None:
        return not type(library).__module__.startswith("transformers.")
    return "auto_map" in _settings(source, revision) and not trust_remote_code


def _compared(
    source: str | Path,
    revision: str | None,
    library: PreTrainedTokenizerBase | None,
    error: Exception | None,
) -> ReadTokenizer:
    """The library's tokenizer where it reads as `tokenizer.json` does, else that of the file.

    error: why the library has none.
    """
    try:
        by_file: PreTrainedTokenizerBase = PreTrainedTokenizerFast.from_pretrained(
            str(source), revision=revision or "main"
        )
    except Exception as damage:  # not narrower: the bare class, as above
        raise _not_loaded(source, error or damage) from damage
    notes = [_DROPOUT] if _switch_off_dropout(by_file) else []
    if library is None:
        why = f"transformers cannot build the class that is named: {first_line(error, 120)}"
    else:
        read = _without_dropout(
            ReadTokenizer(library, f"{type(library).__name__}, equal to {FILE}")
        )
        _take_roles(library, by_file)
        if _alike(library, by_file):
            return read
        why = f"{type(library).__name__}, which transformers builds for it, gives other tokens"
    notes.insert(0, f"the tokenizer is read from {FILE} itself: {why}")
    return ReadTokenizer(by_file, FILE, tuple(notes), (FILE,))


def _take_roles(library: PreTrainedTokenizerBase, by_file: PreTrainedTokenizerBase) -> None:
    """Give `by_file` what the class knows and the files do not say: special tokens, and the names
    of inputs.
    """
    vocabulary = by_file.get_vocab()
    missing: dict[str, Any] = {}
    for role in ROLES:
        token = getattr(library, f"{role}_token")
        if getattr(by_file, f"{role}_token") is None and token in vocabulary:
            missing[f"{role}_token"] = token
    if missing:
        by_file.add_special_tokens(missing)
    by_file.model_input_names = library.model_input_names
    by_file.padding_side = library.padding_side


def _alike(library: PreTrainedTokenizerBase, by_file: PreTrainedTokenizerBase) -> bool:
    """Whether both give the same ids, special tokens included, for all probes and for a pair."""
    texts = [*PROBES, *sampled_texts(by_file)]
    pair = {"text": PROBES[0], "text_pair": PROBES[1], "verbose": False}
    try:
        if _ids(library, texts) != _ids(by_file, texts):
            return False
        return bool(library(**pair)["input_ids"] == by_file(**pair)["input_ids"])
    except Exception:  # as above, from one that has no token for unknown words
        return False


def _ids(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> list[list[int]]:
    ids: list[list[int]] = tokenizer(texts, verbose=False)["input_ids"]
    return ids


def _switch_off_dropout(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Switch BPE dropout off, by which a text has other tokens each time; whether it was on."""
    model: Any = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    is_on = bool(getattr(model, "dropout", None))
    if is_on:
        model.dropout = None
    return is_on


def _without_dropout(read: ReadTokenizer) -> ReadTokenizer:
    """The same with BPE dropout off, and noted where it was on."""
    if not _switch_off_dropout(read.tokenizer):
        return read
    return read._replace(notes=(_DROPOUT,), changes=("no BPE dropout",))


def _check(source: str | Path, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise ModelError for a tokenizer that knows no word, cannot read a text, or reads it in two
    ways.

    Without the tokenizer's files the library makes an empty one, to which every word is unknown.
    """
    folder = source if Path(source).is_dir() else None
    try:
        readings = [_ids(tokenizer, [SENTENCE, _RARE]) for _ in range(4)]
    except Exception as error:  # not narrower: the bare class, as above
        message = f"{_whose(source)} cannot read every text: {first_line(error, 200)}"
        hint = "its vocabulary must hold the token for unknown words"
        raise ModelError(message, hint=hint, file=folder) from error
    body = tokenizer(SENTENCE, add_special_tokens=False)["input_ids"]
    if set(body) <= set(tokenizer.all_special_ids):
        message = f"{_whose(source)} knows no word of a plain sentence"
        raise ModelError(message, hint=_without_files(source), file=folder)
    if any(reading != readings[0] for reading in readings):
        raise ModelError(
            f"{_whose(source)} gives one text other tokens each time",
            hint=f"take what samples, such as enable_sampling, out of {SETTINGS}",
            file=folder,
        )


def _whose(source: str | Path) -> str:
    return "the tokenizer" if Path(source).is_dir() else f"the tokenizer of '{source}'"


def _without_files(source: str | Path) -> str:
    otherwise = f"the folder must hold the tokenizer's files ({FILE} or the vocabulary)"
    return layout_hint(source, otherwise)


def _not_loaded(source: str | Path, error: Exception | None) -> ModelError:
    """The refusal of a tokenizer that cannot be loaded, with the file or the package at fault."""
    folder = Path(source) if Path(source).is_dir() else None
    hint = _without_files(source)
    broken = folder and broken_file(folder, FILE, lambda path: Tokenizer.from_file(str(path)))
    if broken:
        hint = "copy or download the file again, or save the tokenizer again"
    elif package := _missing_package(error):
        hint = f"install what this tokenizer needs: pip install {package}"
    message = f"{_whose(source)} cannot be loaded: {first_line(error, 200)}"
    return ModelError(message, hint=hint, file=broken or folder)


def _missing_package(error: Exception | None) -> str | None:
    """The package that an error asks for and that is not installed; None where it asks for none."""
    asked = _ASKED.search(str(error))
    package = asked and asked[asked.lastindex or 0]
    if isinstance(error, ModuleNotFoundError):
        package = error.name
    if not package:
        return None
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return package
    return None


def _settings(source: str | Path, revision: str | None) -> dict[str, Any]:
    """What `tokenizer_config.json` says; empty where it is missing or cannot be read."""
    file = _file(source, SETTINGS, revision)
    if file is None:
        return {}
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return settings if isinstance(settings, dict) else {}


def _file(source: str | Path, name: str, revision: str | None) -> Path | None:
    """A file of the checkpoint; None where it has none of that name, or nobody can be asked."""
    try:
        path = cached_file(str(source), name, revision=revision, **_QUIET)
    except (OSError, ValueError):
        return None
    return None if path is None else Path(path)
