"""Reading a checkpoint's tokenizer, for fine-tuning and pretraining alike.

`tokenizer.json`, where there is one, is the truth. transformers builds the class that
`tokenizer_config.json` or the model's type names, and passes over what the file says of
normalisation, splitting and the kind of model; so both read the same probe texts, and where they
differ the file itself is taken. What only a class can read is compared with nothing; the record
names the class.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast
from transformers.utils.hub import cached_file

from biobench.core.arrays import Ints, ints
from biobench.core.checkpoint_safety import TOKENIZER_FILES, check_tokenizer, read_mapping
from biobench.core.files import broken_file
from biobench.core.layouts import layout_hint
from biobench.core.text import first_line
from biobench.core.tokenizer_trial import PROBES, SENTENCE, try_tokenizer
from biobench.core.vocabulary import sampled_texts, unreachable
from biobench.errors import ModelError

FILE = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
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


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a tokenizer comes from: a hub id with a revision, or a folder."""

    name: str
    revision: str | None
    trust_remote_code: bool = False

    @property
    def folder(self) -> Path | None:
        """None for a hub id."""
        path = Path(self.name)
        if path.is_dir():
            return path
        return None

    def file(self, name: str) -> Path | None:
        """None where the checkpoint has no file of that name, or nobody can be asked."""
        try:
            path = cached_file(self.name, name, revision=self.revision, **_QUIET)
        except (OSError, ValueError):
            return None
        if path is None:
            return None
        return Path(path)

    def refusal(self, problem: str, hint: str, file: Path | None = None) -> ModelError:
        """The error that this tokenizer cannot be used. file: at fault; else the folder is."""
        named = "the tokenizer"
        if self.folder is None:
            named = f"the tokenizer of '{self.name}'"
        return ModelError(f"{named} {problem}", hint=hint, file=file or self.folder)

    @property
    def without_files(self) -> str:
        """What helps where the tokenizer's files are missing."""
        otherwise = f"the folder must hold the tokenizer's files ({FILE} or the vocabulary)"
        return layout_hint(self.name, otherwise)


def load_tokenizer(source: str | Path, *, revision: str | None = None) -> PreTrainedTokenizerBase:
    """The tokenizer of a checkpoint (hub id or folder); see `read_tokenizer`."""
    return _read(_Source(str(source), revision)).tokenizer


def read_tokenizer(
    source: str | Path, *, revision: str | None = None, trust_remote_code: bool = False
) -> ReadTokenizer:
    """The tokenizer of a checkpoint (hub id or folder), compared with its `tokenizer.json`.

    Raises ModelError where there is none, where it knows no word, and where it draws its tokens at
    random and cannot be told not to.
    """
    read = _read(_Source(str(source), revision, trust_remote_code))
    lines = unreachable(read.tokenizer, by_file=FILE in read.maker)
    return read._replace(notes=(*read.notes, *lines))


def probe_ids(tokenizer: PreTrainedTokenizerBase) -> Ints:
    """Ids that stand in texts, each once, without special tokens."""
    ids = set(chain.from_iterable(_ids(tokenizer, list(PROBES), add_special_tokens=False)))
    return ints(sorted(ids.difference(tokenizer.all_special_ids)))


def _read(source: _Source) -> ReadTokenizer:
    _gate(source)
    try:
        library = AutoTokenizer.from_pretrained(
            source.name, revision=source.revision, trust_remote_code=source.trust_remote_code
        )
    # Not narrower: tokenizers raises the bare class for a file that is not whole, the checkpoint's
    # own code and transformers' converters raise anything, and the file may be read all the same.
    except Exception as error:
        read = _instead_of_class(source, error)
    else:
        read = _with_class(source, library)
    _check(source, read.tokenizer)
    return read


def _gate(source: _Source) -> None:
    """Refuse files that would lead the library elsewhere, fill memory or take for ever."""
    file = source.file(FILE)
    files = [file, *map(source.file, TOKENIZER_FILES)]
    folders = {source.folder, *(found.parent for found in files if found is not None)}
    for folder in filter(None, folders):
        check_tokenizer(folder)
    if file is not None:
        try_tokenizer(file)


def _with_class(source: _Source, library: PreTrainedTokenizerBase) -> ReadTokenizer:
    """The tokenizer of the library's class where it reads as `tokenizer.json` does, else that of
    the file. One of the checkpoint's own code is the truth.
    """
    made_by = type(library)
    is_own_code = not made_by.__module__.startswith("transformers.")
    if is_own_code or source.file(FILE) is None:
        return _without_dropout(ReadTokenizer(library, made_by.__name__))
    if made_by is PreTrainedTokenizerFast:
        return _without_dropout(ReadTokenizer(library, FILE))
    try:
        by_file = _by_file(source)
    except Exception as damage:  # not narrower: the bare class, as above
        raise _not_loaded(source, damage) from damage
    # Before the texts are read: dropout gives a text other tokens each time.
    read = _without_dropout(ReadTokenizer(library, f"{made_by.__name__}, equal to {FILE}"))
    had_dropout = _switch_off_dropout(by_file)
    _take_roles(library, by_file)
    if _alike(library, by_file):
        return read
    why = f"{made_by.__name__}, which transformers builds for it, gives other tokens"
    return _of_the_file(by_file, why, had_dropout=had_dropout)


def _instead_of_class(source: _Source, error: Exception) -> ReadTokenizer:
    """The tokenizer of the file, where the library cannot build its class. error: why.

    Code in the checkpoint that would make the tokenizer if it were trusted is the truth.
    """
    file = source.file(FILE)
    is_own_code = not source.trust_remote_code and "auto_map" in _settings(source)
    if is_own_code or file is None:
        raise _not_loaded(source, error) from error
    try:
        by_file = _by_file(source)
    except Exception as damage:  # not narrower: the bare class, as above
        raise _not_loaded(source, error) from damage
    had_dropout = _switch_off_dropout(by_file)
    why = f"transformers cannot build the class that is named: {first_line(error, 120)}"
    return _of_the_file(by_file, why, had_dropout=had_dropout)


def _by_file(source: _Source) -> PreTrainedTokenizerBase:
    tokenizer: PreTrainedTokenizerBase = PreTrainedTokenizerFast.from_pretrained(
        source.name, revision=source.revision or "main"
    )
    return tokenizer


def _of_the_file(
    tokenizer: PreTrainedTokenizerBase, why: str, *, had_dropout: bool
) -> ReadTokenizer:
    """The tokenizer of the file itself, with a note why."""
    notes = [f"the tokenizer is read from {FILE} itself: {why}"]
    if had_dropout:
        notes.append(_DROPOUT)
    return ReadTokenizer(tokenizer, FILE, tuple(notes), (FILE,))


def _take_roles(library: PreTrainedTokenizerBase, by_file: PreTrainedTokenizerBase) -> None:
    """Give `by_file` what the class knows and the files do not say: special tokens, and the names
    of inputs.
    """
    vocabulary = by_file.get_vocab()
    missing: dict[str, Any] = {}
    for role in ROLES:
        name = f"{role}_token"
        token = getattr(library, name)
        if getattr(by_file, name) is None and token in vocabulary:
            missing[name] = token
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


def _ids(
    tokenizer: PreTrainedTokenizerBase, texts: list[str], *, add_special_tokens: bool = True
) -> list[list[int]]:
    encoding = tokenizer(texts, add_special_tokens=add_special_tokens, verbose=False)
    ids: list[list[int]] = encoding["input_ids"]
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


def _check(source: _Source, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise ModelError for a tokenizer that knows no word, cannot read a text, or reads it in two
    ways.

    Without the tokenizer's files the library makes an empty one, to which every word is unknown.
    """
    texts = [SENTENCE, _RARE]
    try:
        reading = _ids(tokenizer, texts)
        is_steady = all(_ids(tokenizer, texts) == reading for _ in range(3))
    except Exception as error:  # not narrower: the bare class, as above
        raise source.refusal(
            f"cannot read every text: {first_line(error, 200)}",
            hint="its vocabulary must hold the token for unknown words",
        ) from error
    (sentence,) = _ids(tokenizer, [SENTENCE], add_special_tokens=False)
    if set(sentence) <= set(tokenizer.all_special_ids):
        raise source.refusal("knows no word of a plain sentence", hint=source.without_files)
    if not is_steady:
        raise source.refusal(
            "gives one text other tokens each time",
            hint=f"take what samples, such as enable_sampling, out of {SETTINGS}",
        )


def _not_loaded(source: _Source, error: Exception) -> ModelError:
    """The refusal of a tokenizer that cannot be loaded, with the file or the package at fault."""
    hint = source.without_files
    broken = None
    if source.folder is not None:
        broken = broken_file(source.folder, FILE, lambda path: Tokenizer.from_file(str(path)))
    package = _missing_package(error)
    if broken is not None:
        hint = "copy or download the file again, or save the tokenizer again"
    elif package is not None:
        hint = f"install what this tokenizer needs: pip install {package}"
    return source.refusal(f"cannot be loaded: {first_line(error, 200)}", hint, broken)


def _missing_package(error: Exception) -> str | None:
    """The package that an error asks for and that is not installed; None where it asks for none."""
    package: str | None = None
    asked = _ASKED.search(str(error))
    if asked is not None:
        package = asked[asked.lastindex or 0]
    if isinstance(error, ModuleNotFoundError):
        package = error.name
    if not package:
        return None
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return package
    return None


def _settings(source: _Source) -> dict[str, Any]:
    """What `tokenizer_config.json` says; empty where it is missing or cannot be read."""
    file = source.file(SETTINGS)
    if file is None:
        return {}
    try:
        return read_mapping(file, "tokenizer's config")
    except ModelError:
        return {}
