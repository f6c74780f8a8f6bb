"""Strict models from YAML: every mistake is one line with file, line, value and a suggestion.

`Strict` is the base of each spec (task, recipe, record). `load_yaml_model` reads one from a file;
`apply_overrides` sets single fields from ``KEY=VALUE`` texts read by the same YAML rules.
"""

from __future__ import annotations

import copy
import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, PydanticKnownError
from pydantic_core.core_schema import no_info_after_validator_function

from biobench.errors import SpecError
from biobench.schema import yaml12
from biobench.schema.resolution import resolve
from biobench.schema.yaml12 import LocatedYaml, Path_, Scalar, plain

M = TypeVar("M", bound=BaseModel)

_MOST_EXACT = 2**53
"""As large as a float still counts exactly."""
Count = Annotated[int, Field(ge=0, le=_MOST_EXACT)]
Positive = Annotated[int, Field(ge=1, le=_MOST_EXACT)]
Bytes = Annotated[int, Field(ge=0, le=_MOST_EXACT)]
Seconds = Annotated[float, Field(ge=0, le=1e10)]
"""Or kilowatt-hours, epochs, rates: what is never negative and of a size that people know."""
Fraction = Annotated[float, Field(ge=0, le=1)]
Number = Annotated[float, Field(ge=-1e15, le=1e15)]
"""Losses and scores: finite, whatever their sign."""
Line = Annotated[
    str, StringConstraints(max_length=1_000, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$")
]
"""Text of one line, without control characters."""
Text = Annotated[str, StringConstraints(max_length=10_000)]
"""What people or corpora name things; what shows it escapes it."""


class Strict(BaseModel):
    """Base model: unknown fields refused, no coercion between types, immutable."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        arbitrary_types_allowed=False,
        protected_namespaces=(),
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )
    RENAMED: ClassVar[Mapping[str, str]] = {}
    """Names of fields in files of earlier versions, and what they are called now."""

    @model_validator(mode="before")
    @classmethod
    def _shaped(cls, data: Any) -> Any:
        """Rename fields of earlier versions, refuse wrong ones, then resolve scalars."""
        if not isinstance(data, dict):
            return data
        renamed = {old: new for old, new in cls.RENAMED.items() if new not in data}
        data = {renamed.get(key, key): value for key, value in data.items()}
        cls._check_keys(data)
        annotations = {name: field.annotation for name, field in cls.model_fields.items()}
        return {key: resolve(value, annotations.get(key)) for key, value in data.items()}

    @classmethod
    def _check_keys(cls, data: dict[Any, Any]) -> None:
        """Raise the error of type ``shape`` for an unknown key, with what is known instead, or a
        missing one.
        """
        unknown = cls._unknown_keys(data)
        required = [name for name, field in cls.model_fields.items() if field.is_required()]
        missing = [name for name in required if name not in data]
        if unknown:
            key = unknown[0]
            name = str(key)[:80]
            message = f"unknown key {name!r}"
            hint = suggest(name, sorted(cls.model_fields))
        elif missing:
            key = missing[0]
            message = f"'{key}' is missing"
            hint = f"add `{key}: ...`"
        else:
            return
        count = len(unknown) + len(missing)
        context = {"what": message, "hint": hint, "key": key, "count": count}
        raise PydanticCustomError("shape", "{what}", context)

    @classmethod
    def _unknown_keys(cls, data: dict[Any, Any]) -> list[Any]:
        if cls.model_config["extra"] != "forbid":
            return []
        return [key for key in data if key not in cls.model_fields]


@dataclass(frozen=True, slots=True)
class OneOf:
    """Annotation of a text that is one of `known()`: a Literal whose values are registered."""

    known: Callable[[], Sequence[str]]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """The text, refused as a Literal refuses it."""
        return no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The values that are known by now."""
        return {**handler(schema), "enum": list(self.known())}

    def _checked(self, text: str) -> str:
        if text not in self.known():
            expected = " or ".join(map(repr, self.known()))
            raise PydanticKnownError("literal_error", {"expected": expected})
        return text


MOST_MORE = 3
"""Faults of a file that are told with the first; more are not."""
MOST_KNOWN = 40
"""Names that are listed in a hint; more are not."""


def repeated(names: Iterable[str]) -> list[str]:
    """The names that occur more than once, sorted."""
    counts = Counter(names)
    return sorted(name for name, count in counts.items() if count > 1)


def suggest(word: str, known: Sequence[str], otherwise: str = "") -> str:
    """``did you mean 'x'?`` when something close is known, in whatever case, else the list of what
    is, unless it is long. otherwise: said in place of that list.
    """
    folded = word.casefold()
    longest = 2 * len(word)
    # a slip of the pen makes no word of twice the length, but a name may be cut short
    near = [n for n in known if len(n) <= longest or n.casefold().startswith(folded)]
    spelled = {name.casefold(): name for name in near}
    close = difflib.get_close_matches(word, near, n=1)
    close = close or difflib.get_close_matches(folded, spelled, n=1)
    if close:
        nearest = spelled.get(close[0], close[0])
        return f"did you mean '{nearest}'?"
    return otherwise or _listed(known)


def _listed(known: Sequence[str]) -> str:
    """The known names in words."""
    if not known:
        return "there is none to choose from"
    if len(known) > MOST_KNOWN:
        return f"none of the {len(known)} known names is near it"
    names = ", ".join(sorted(known))
    return f"known: {names}"


def check_keywords(name: str, keywords: Iterable[str], known: Sequence[str]) -> None:
    """Raise TypeError for a keyword that a function does not have, with the nearest one.

    name: of the function, as its caller writes it.
    """
    for keyword in keywords:
        if keyword not in known:
            hint = suggest(keyword, known)
            raise TypeError(f"{name}() has no argument '{keyword}'; {hint}")


def _show(value: Any) -> str:
    text = repr(plain(value))
    return text if len(text) <= 60 else text[:57] + "..."


class FieldError(ValueError):
    """A validator's complaint with its remedy; `spec_error` adds file and line.

    value: a piece of a corpus, for which `{}` stands in `what`; see `errors.BioBenchError`.
    """

    def __init__(self, what: str, hint: str, value: str | None = None) -> None:
        super().__init__(f"{what} ({hint})")
        self.what, self.hint, self.value = what, hint, value


def spec_error(error: ValidationError, located: LocatedYaml, prefix: Path_ = ()) -> SpecError:
    """The most telling of pydantic's complaints as one SpecError with line and suggestion; the
    others by their lines.
    """
    telling, *others = [
        _said(detail, located, prefix) for detail in _complaints(error, located, prefix)
    ]
    more = [other for other in others if other.line not in (None, telling.line)]
    what = telling.what
    for other in more[:MOST_MORE]:
        what += f"; line {other.line}: {other.what}"
    return SpecError(what, hint=telling.hint, file=located.file, line=telling.line)


def _said(detail: Any, located: LocatedYaml, prefix: Path_) -> SpecError:
    """One complaint with its line and suggestion."""
    path: Path_ = (*prefix, *detail["loc"])
    steps = set(chain.from_iterable(located.lines))
    field = ".".join(str(step) for step in path if step in steps)
    context = detail.get("ctx", {})
    complaint = context.get("error")
    named: Path_ = ()
    if detail["type"] == "shape":
        named = (context["key"],)
        message, hint = _shape_words(context, field)
    elif isinstance(complaint, FieldError):
        named = _steps_named(complaint)
        message = ": ".join(filter(None, [field, complaint.what]))
        hint = complaint.hint
    else:
        problem, hint = _library_words(detail)
        message = f"{field}: {problem}, got {_show(detail['input'])}"
    line = located.line_of((*path, *named))
    return SpecError(message, hint=hint, file=located.file, line=line)


def _shape_words(context: Mapping[str, Any], field: str) -> tuple[str, str]:
    """(what `Strict` says of a wrong key, hint). field: that has the key."""
    message = context["what"]
    if message.endswith("missing"):
        where = field or "the spec"
        message = f"{message} in {where}"
    return message, context["hint"]


def _steps_named(complaint: FieldError) -> Path_:
    """The path that a complaint begins with, as in ``sources.1.id is missing``."""
    steps = complaint.what.split(" ", 1)[0].split(".")
    return tuple(int(step) if step.isdecimal() else step for step in steps)


def _library_words(detail: Any) -> tuple[str, str]:
    """(what pydantic says, in words of YAML, hint)."""
    hint = "see `biobench tasks schema` for the fields and their types"
    if detail["type"] == "literal_error":
        expected = detail["ctx"]["expected"].replace(" or ", ", ").split(",")
        names = [name.strip(" '") for name in expected]
        hint = suggest(str(detail["input"]), names)
    message = detail["msg"].removeprefix("Value error, ").partition(" or instance of ")[0]
    message = message.replace("valid tuple", "valid list").replace("Tuple should", "List should")
    message = message.replace("valid dictionary", "valid mapping")
    return message[0].lower() + message[1:], hint


def _complaints(error: ValidationError, located: LocatedYaml, prefix: Path_) -> list[Any]:
    """The most telling complaint first.

    In a union every alternative complains under a step of its own, which the file does not have;
    the alternative with the fewest complaints is the one that was meant.
    """
    candidates: list[Any] = []
    unions: dict[Path_, dict[Path_, list[Any]]] = {}
    for detail in error.errors():
        path = detail["loc"]
        depth = located.depth_of((*prefix, *path)) - len(prefix)
        if depth == len(path):
            candidates.append(detail)
        else:
            alternatives = unions.setdefault(path[:depth], {})
            alternatives.setdefault(path[: depth + 1], []).append(detail)
    for alternatives in unions.values():
        meant: list[Any] = min(alternatives.values(), key=_misfit)
        candidates += meant
    candidates.sort(key=lambda detail: (detail["type"] != "shape", -len(detail["loc"])))
    return candidates


def _misfit(complaints: list[Any]) -> tuple[bool, bool, int]:
    """How badly one alternative of a union fits: another kind of value altogether is worse than bad
    fields.
    """
    types = [complaint["type"] for complaint in complaints]
    is_other_kind = len(types) == 1 and types[0].endswith("_type")
    is_text = isinstance(complaints[0]["input"], str)
    is_other_literal = "literal_error" in types and not is_text
    wrong_fields = sum(complaint.get("ctx", {}).get("count", 1) for complaint in complaints)
    return is_other_kind, is_other_literal, wrong_fields


def validate(located: LocatedYaml, model: type[M], prefix: Path_ = ()) -> M:
    """Validate parsed YAML (or the part of it at `prefix`) as `model`. Raises SpecError."""
    data = located.data
    for step in prefix:
        data = data[step]
    if not isinstance(data, dict):
        message = f"expected a mapping of fields, got {_show(data)}"
        line = located.line_of(prefix)
        raise SpecError(message, hint="write `field: value` lines", file=located.file, line=line)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise spec_error(error, located, prefix) from None


def load_yaml_model(path: str | Path, model: type[M]) -> M:
    """Read one YAML file as `model`. Raises SpecError (``file:line: what``)."""
    return validate(yaml12.parse_file(Path(path)), model)


def apply_overrides(located: LocatedYaml, overrides: Sequence[str]) -> LocatedYaml:
    """Set fields from ``KEY=VALUE`` texts (dotted keys, list indices allowed) in parsed YAML.

    Values follow the same YAML rules as the file. Raises SpecError when a text has no ``=`` or a
    key crosses something that is not a mapping. Unknown keys are found by the validation that
    follows.
    """
    data = copy.deepcopy(located.data)
    for text in overrides:
        key, value = _key_and_value(text)
        *groups, field = key.strip().split(".")
        container = data
        for step in groups:
            slot = _slot(container, step, f"--set {key}: '{step}' is not a group of fields")
            if isinstance(container, dict):
                container.setdefault(slot, {})
            container = container[slot]
        slot = _slot(container, field, f"--set {key}: '{field}' cannot be set there")
        container[slot] = value
    return LocatedYaml(data, located.lines, located.file)


def _key_and_value(override: str) -> tuple[str, Any]:
    """The key and the parsed value of ``KEY=VALUE``; no value is null."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        hint = "for example --set training.epochs=1"
        raise SpecError(f"--set {override!r} is not KEY=VALUE", hint=hint)
    if not text.strip():
        return key, Scalar(None, "")
    return key, yaml12.parse(text).data


def _slot(container: Any, step: str, complaint: str) -> Any:
    """The index or key that a step of a dotted key names. Raises SpecError with the complaint."""
    if isinstance(container, list) and step.isdigit() and int(step) < len(container):
        return int(step)
    if isinstance(container, dict):
        return step
    raise SpecError(complaint, hint="check the dotted key")


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of `model`, for editor completion."""
    return model.model_json_schema() | {"$schema": "https://json-schema.org/draft/2020-12/schema"}
