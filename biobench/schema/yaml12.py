"""YAML 1.2 core scalars with the line of everything, and nothing that YAML can do beyond data.

Parsing stops at PyYAML's node graph; scalars are resolved here by the YAML 1.2 core schema (section
10.3.2 of the YAML 1.2.2 specification): ``5e-5`` is a number, ``no`` is text. Plain scalars that
are not text keep their written form, so that a field which wants text (a label, a code) gets it as
written. Anchors, aliases and tags are refused: a spec is read by people.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import singledispatch
from pathlib import Path
from typing import Any

import yaml

from biobench.core.files import read_regular
from biobench.errors import SpecError

_NULL = re.compile(r"|~|null|Null|NULL")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
# Python refuses to read longer decimals
_DECIMAL = re.compile(r"[-+]?[0-9]{1,4000}")
_OCTAL_OR_HEX = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)

_LOADER: Any = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
"""libyaml's reader, ten times quicker than PyYAML's own."""
MOST_BYTES = 16 * 2**20
"""Of a YAML file; a spec with ten thousand labels has under 1 MB."""
DEEPEST = 50
"""Lists and mappings that lie in one another in a document; ours have under ten."""

Path_ = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A plain scalar that is not text: its value by the core schema, and how it was written."""

    value: int | float | bool | None
    text: str


@singledispatch
def plain(value: Any) -> Any:
    """Parsed YAML as plain Python data, every scalar by its core-schema value."""
    return value


@plain.register
def _plain_scalar(scalar: Scalar) -> Any:
    return scalar.value


@plain.register
def _plain_list(items: list) -> Any:  # type: ignore[type-arg]
    return list(map(plain, items))


@plain.register
def _plain_mapping(fields: dict) -> Any:  # type: ignore[type-arg]
    return {key: plain(value) for key, value in fields.items()}


@dataclass(slots=True)
class LocatedYaml:
    """A parsed document: plain data (dict, list, str, Scalar) and the line (1-based) of each
    path."""

    data: Any
    lines: dict[Path_, int] = field(default_factory=dict)
    file: str | None = None

    def line_of(self, path: Path_) -> int | None:
        """Line of the deepest part of `path` that the document has; steps it does not know are
        skipped.
        """
        at: Path_ = ()
        for step in path:
            if (*at, step) in self.lines:
                at = (*at, step)
        return self.lines.get(at)

    def depth_of(self, path: Path_) -> int:
        """How many leading steps of `path` the document has."""
        depth = 0
        while depth < len(path) and path[: depth + 1] in self.lines:
            depth += 1
        return depth


def resolve_scalar(text: str) -> str | Scalar:
    """A plain (unquoted) scalar by the YAML 1.2 core schema."""
    for pattern, read in _CORE_SCHEMA:
        if pattern.fullmatch(text):
            return Scalar(read(text), text)
    return text


def _based_int(text: str) -> int:
    return int(text, base=0)


def _float(text: str) -> float:
    """Python writes infinity and NaN without the dot."""
    return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))


_CORE_SCHEMA: tuple[tuple[re.Pattern[str], Callable[[str], int | float | None]], ...] = (
    (_NULL, lambda _: None),
    (_BOOL, lambda text: text.lower() == "true"),
    (_DECIMAL, int),
    (_OCTAL_OR_HEX, _based_int),
    (_FLOAT, _float),
)
"""How each kind of scalar is written, and what reads it."""


def _failure(message: str, hint: str, mark: Any, file: str | None) -> SpecError:
    """mark: of PyYAML or libyaml; None: of no line."""
    line = None if mark is None else mark.line + 1
    return SpecError(message, hint=hint, file=file, line=line)


def _build(node: yaml.Node, path: Path_, lines: dict[Path_, int], file: str | None) -> Any:
    """The node as plain data; `lines` gets the line of every path."""
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.style else resolve_scalar(node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*path, i), lines, file) for i, item in enumerate(node.value)]
    return _build_mapping(node, path, lines, file)


def _build_mapping(
    node: yaml.Node, path: Path_, lines: dict[Path_, int], file: str | None
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key, mark = key_node.value, key_node.start_mark
        if not isinstance(key_node, yaml.ScalarNode):
            raise _failure("a key must be a single text", "write `name: value`", mark, file)
        if key in result:
            first_line = lines[(*path, key)]
            message = f"duplicate key '{key}' (first on line {first_line})"
            raise _failure(message, "keep one of the two", mark, file)
        result[key] = _build(value_node, (*path, key), lines, file)
        lines[(*path, key)] = mark.line + 1
    return result


def parse(text: str, file: str | Path | None = None) -> LocatedYaml:
    """Parse one YAML document. Raises SpecError with file and line on anything that is not plain
    data.
    """
    name = None if file is None else str(file)
    lines: dict[Path_, int] = {}
    node = _node(text, name)
    data = _build(node, (), lines, name)
    return LocatedYaml(data, lines, name)


def _node(text: str, file: str | None) -> yaml.Node:
    """The document as PyYAML's graph of nodes. Raises SpecError with file and line."""
    match = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if match is not None:
        line = text.count("\n", 0, match.start()) + 1
        message = f"character {match[0]!r} is not allowed in YAML"
        raise SpecError(message, hint="remove the control character", file=file, line=line)
    try:
        _check_events(text, file)
        node: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        hint = "check indentation (with spaces, never tabs), quotes and colons"
        problem = error.problem or error.context or "not valid YAML"
        raise _failure(f"not valid YAML: {problem}", hint, mark, file) from None
    if node is None:
        raise SpecError("the file is empty", hint="fill it in, or name another file", file=file)
    return node


def _check_events(text: str, file: str | None) -> None:
    """Raise SpecError for anchors, tags and nesting without end."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        for kind in ("anchor", "tag"):
            name = getattr(event, kind, None)
            if name is not None:
                hint = "write the value out; specs hold plain data only"
                message = f"{kind} '{name}' is not allowed in a spec"
                raise _failure(message, hint, event.start_mark, file)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:  # the parser's time grows with the square of the depth
            hint = "a spec is a few levels deep"
            raise _failure("nested too deeply", hint, event.start_mark, file)


def read_text(path: Path) -> str:
    """Text of a UTF-8 file. Raises SpecError, for a byte that is not UTF-8 with its line."""
    if path.is_dir():
        raise SpecError("is a folder, not a YAML file", hint="give the file's path", file=path)
    raw = read_regular(path, MOST_BYTES, SpecError)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        byte = raw[error.start]
        message = f"byte 0x{byte:02x} is not UTF-8"
        raise SpecError(message, hint="save the file as UTF-8", file=path, line=line) from None


def parse_file(path: Path) -> LocatedYaml:
    """`parse` of a UTF-8 file."""
    return parse(read_text(path), path)
