"""`--config FILE`: the options of a command, written down once; and options that not every command spells alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from biobench.errors import SpecError, UsageError
from biobench.schema.strict import suggest
from biobench.schema.yaml12 import LocatedYaml, Path_, Scalar, parse_file

NAME = "--config"
_OUT = {"--out", "--output"}


def expanded(words: Sequence[str], root: Any) -> list[str]:
    """The words of a command line with `--config FILE` in place of which the file's options stand, first.

    root: the command group. The file holds option names without dashes, for the command that is called, or under the
    names of several commands (`run:`, `tasks gate:`) those of each. An option on the command line replaces the file's.
    Raises UsageError and SpecError (file, line).
    """
    kept, path = _taken_out(words)
    if path is None:
        return kept
    command, count = _command(kept, root)
    if count == 0 or hasattr(command, "commands"):
        raise UsageError(f"{NAME} without a command", hint=f"write `biobench run {NAME} {path}`")
    document = parse_file(path)
    name = " ".join(kept[:count])
    written = [flag.partition("=")[0] for flag in kept[count:] if flag.startswith("--")]
    return [*kept[:count], *_options(document, name, command, root, written), *kept[count:]]


def respelled(words: Sequence[str], root: Any) -> list[str]:
    """The words with `--format json` and `--json`, `--out` and `--output` as the command that is called has them."""
    command, count = _command(words, root)
    flags = {flag for parameter in getattr(command, "params", []) for flag in parameter.opts}
    result = list(words[:count])
    rest = iter(words[count:])
    for word in rest:
        flag, equals, value = word.partition("=")
        if word == "--":
            return [*result, word, *rest]
        if flag == "--format" and flag not in flags and "--json" in flags:
            value = value if equals else next(rest, "")
            # another format is refused as the option that it is
            result += ["--json"] if value == "json" else [flag, value]
        elif flag in _OUT and flag not in flags and flags & _OUT:
            result.append(word.replace(flag, min(flags & _OUT), 1))
        else:
            result.append(word)
    return result


def _command(words: Sequence[str], root: Any) -> tuple[Any, int]:
    """The command that the words call, and how many of them name it."""
    command, count = root, 0
    while count < len(words) and words[count] in getattr(command, "commands", {}):
        command, count = command.commands[words[count]], count + 1
    return command, count


def _taken_out(words: Sequence[str]) -> tuple[list[str], Path | None]:
    """The words without the option, and its value."""
    kept: list[str] = []
    path: Path | None = None
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        if word == "--":
            return [*kept, word, *rest], path
        if flag != NAME:
            kept.append(word)
            continue
        value = value if equals else next(rest, "")
        if not value or path is not None:
            raise UsageError(f"{NAME} needs one file", hint=f"write {NAME} run.yaml, once")
        path = Path(value)
    return kept, path


def _options(document: LocatedYaml, name: str, command: Any, root: Any, written: Sequence[str]) -> list[str]:
    data = document.data
    place: Path_ = ()
    if not isinstance(data, dict):
        raise SpecError("holds no options", hint="write `suite: en`, one a line", file=document.file)
    if data and all(isinstance(value, dict) for value in data.values()):
        for section in data:
            _check_section(section, root, document)
        data, place = data.get(name, {}), (name,)
    flags = {flag.removeprefix("--"): p for p in command.params for flag in p.opts if flag.startswith("--")}
    off = {p.opts[0].removeprefix("--"): p.secondary_opts for p in command.params if p.opts and p.secondary_opts}
    result: list[str] = []
    for key, value in data.items():
        option = key.replace("_", "-")
        if option not in flags:
            line = document.line_of((*place, key))
            raise SpecError(
                f"`{name}` has no option '{key}'", hint=suggest(option, sorted(flags)), file=document.file, line=line
            )
        parameter = flags[option]
        if set(written) & {*parameter.opts, *parameter.secondary_opts}:
            continue
        plain = value.value if isinstance(value, Scalar) else value
        if parameter.is_flag:
            if not isinstance(plain, bool):
                raise SpecError(
                    f"'{key}' is yes or no",
                    hint="write true or false",
                    file=document.file,
                    line=document.line_of((*place, key)),
                )
            result += [f"--{option}"] if plain else list(off.get(option, ()))[:1]
        elif plain is not None:
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, (dict, list)):
                    line = document.line_of((*place, key))
                    raise SpecError(f"'{key}' is no text or number", hint="quote it", file=document.file, line=line)
                result += [f"--{option}", item.text if isinstance(item, Scalar) else str(item)]
    return result


def _check_section(name: str, root: Any, document: LocatedYaml) -> None:
    command = root
    for word in name.split():
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            hint = suggest(name, sorted(root.commands))
            raise SpecError(f"'{name}' is no command", hint=hint, file=document.file, line=document.line_of((name,)))
