"""A first task spec from data files: what they are is read from them (`biobench.data.sniff`)."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.checks.findings import Finding, audit
from biobench.data.fetch import fetch_named
from biobench.data.load import CountedSource, read_counted
from biobench.data.locate import HOMEPAGE
from biobench.data.sniff import Attempt, Wanted, sniff
from biobench.data.sniff.languages import language_of
from biobench.data.sniff.parts import SPLIT_NAMES, Parts, find_parts, name_files
from biobench.data.sniff.persons import signs_of_persons
from biobench.errors import BioBenchError, DataFormatError, UsageError
from biobench.kinds import get_kind
from biobench.schema.task import SPLITS

_MOST_SHOWN = 12
"""Labels that are printed with their numbers."""
OPEN = "access: open            # check: agreement, if not anybody may read the data"
AGREEMENT = """access: agreement       # check: {reason}; open, if anybody may read the data
obtain: {{needs: unknown, pages: [], steps: []}}   # fill in"""


@dataclass(frozen=True, slots=True)
class Draft:
    """A first spec. detected: what the data was taken for, one line each. data_dir: for the next
    commands.
    """

    text: str
    detected: tuple[str, ...]
    data_dir: Path


def scaffold(
    path: str | Path,
    task_id: str,
    *,
    language: str | None = None,
    wanted: Wanted | None = None,
    clinical: bool = False,
) -> Draft:
    """A task for the data file, or the folder, at `path`, with the counts and findings of a first
    reading.

    Each way to read the content is tried on all of it; the one that loses least is kept. Files or
    folders called train, dev and test are taken as splits; without a dev part, validation is cut
    from the end of train; a single file is split 80/10/10. wanted: columns, not to be guessed.
    clinical: the texts are patients'. language: None takes English or French, by the texts.
    Raises UsageError when there is no such file or `task_id` is none, DataFormatError with file and
    line when nothing reads cleanly.
    """
    path = Path(path)
    _check_id(task_id)
    if not path.exists():
        hint = "give a data file, a folder with train, dev and test, or hub:ORG/NAME"
        raise UsageError(f"there is no file '{path}'", hint=hint)
    parts = find_parts(path)
    trial = sniff(parts.corpus, wanted or Wanted())
    if trial.proposal.files is not None:
        parts = name_files(parts, trial.proposal.files)
    data_dir = parts.folder.resolve().parent
    language = language or language_of(trial.documents)
    text, task, source = _read_as_drafted(parts, trial, task_id, language, data_dir)
    findings = audit(task.spec, source.documents, source.labels, {})
    lines = [*_guessed(trial, parts), *_counted(source), *_remarks(parts)]
    lines += [f"finding: {finding.line}" for finding in findings] or ["findings: none"]
    reason = signs_of_persons(trial.proposal.columns, trial.documents)
    if clinical:
        reason = "--clinical"
    if reason:
        lines.append(f"access: agreement ({reason})")
        text = text.replace(OPEN, AGREEMENT.format(reason=reason))
    return Draft(text + _facts(source, findings), tuple(lines), data_dir)


def scaffold_named(
    name: str, task_id: str, revision: str | None, data_dir: str | Path | None, **options: Any
) -> Draft:
    """A task for `hub:ORG/NAME[:CONFIG]`, fetched into a folder of its own below `data_dir`.

    options: of `scaffold`. Raises what `fetch_named` and `scaffold` raise.
    """
    _check_id(task_id)
    hub, folder = fetch_named(name, revision, data_dir)
    draft = scaffold(folder, task_id, **options)
    source = {"repo": hub.repo, "config": hub.config, "revision": hub.revision}
    text = draft.text.replace("\nreader: ", f"\n  hub: {flow(source)}\nreader: ", 1)
    page = f"https://huggingface.co/datasets/{hub.repo}"
    text = text.replace(f"{HOMEPAGE}   # fill in", page)
    seen = f"hub: {hub.repo}, configuration {hub.config}, commit {hub.revision}"
    return Draft(text, (seen, *draft.detected), draft.data_dir)


def _check_id(task_id: str) -> None:
    if not re.fullmatch(r"[a-z0-9_]+", task_id):
        hint = "use lower-case letters, digits and underscores, such as my_task"
        raise UsageError(f"'{task_id}' is not a task id", hint=hint)


def _read_as_drafted(
    parts: Parts, trial: Attempt, task_id: str, language: str, data_dir: Path
) -> tuple[str, LoadedTask, CountedSource]:
    """(the spec without facts, the task, its data), with `ids` where its ids repeat. Raises what
    reading raises, with the reader in the hint.
    """
    reader = trial.proposal.reader
    with tempfile.TemporaryDirectory() as aside:
        spec = Path(aside) / f"{task_id}.yaml"
        for ids in ({}, {"ids": "split_and_name"}, {"ids": "repeated"}):
            draft = _filled_in(parts, trial, task_id, language, reader | ids)
            spec.write_text(draft, encoding="utf-8")
            try:
                task = load_task(spec)
                source = read_counted(task, data_dir)
            except BioBenchError as error:
                problem = _of_the_data(error, spec, parts, trial)
                if "reader.ids" not in error.hint:
                    break
            else:
                reader |= ids
                return draft, task, source
    raise problem


def _of_the_data(error: BioBenchError, spec: Path, parts: Parts, trial: Attempt) -> BioBenchError:
    """The error with the data's file in place of a draft that nobody sees, and how it was read."""
    file, line = error.file, error.line
    if file is None or Path(file) == spec:
        file, line = str(parts.corpus.paths[0]), None
    hint = f"{error.hint}; it was read with `reader: {flow(trial.proposal.reader)}`"
    return DataFormatError(error.what, hint=hint, file=file, line=line)


def _guessed(trial: Attempt, parts: Parts) -> list[str]:
    """What the data was taken for."""
    proposal = trial.proposal
    labels = [f"{label} {number}" for label, number in sorted(trial.labels.items())]
    if len(labels) > _MOST_SHOWN:
        labels[_MOST_SHOWN:] = ["…"]
    splits: list[str] = []
    for name, files in parts.names.items():
        shown = files if isinstance(files, str) else f"{len(files)} files"
        splits.append(f"{name} = {shown}")
    lines = [
        f"type: {proposal.type}",
        f"reader: {flow(proposal.reader)}",
        *proposal.seen,
        f"labels: {len(trial.labels)}: {', '.join(labels)}",
        f"splits: {', '.join(splits)}",
    ]
    named = {
        "columns": _names(proposal.columns),
        "not read": _names(proposal.unused),
        "files not used": ", ".join(parts.unused),
    }
    return lines + [f"{about}: {names}" for about, names in named.items() if names]


def _names(columns: list[str]) -> str:
    return ", ".join(name.strip() or "(without a name)" for name in columns)


def _counted(source: CountedSource) -> list[str]:
    """Documents of each split, and of mentions those that are in a score and those that are not."""
    sizes = ", ".join(f"{name} {source.counts[name]['documents']}" for name in SPLITS)
    lines = [f"documents: {sizes}"]
    if "mentions" in source.counts["train"]:
        kept = sum(counts["mentions"] for counts in source.counts.values())
        dropped = sum(sum(numbers.values()) for numbers in source.unexpressed.values())
        lines.append(f"mentions: {kept} kept, {dropped} dropped")
    return lines


def _remarks(parts: Parts) -> list[str]:
    """What the user may have meant otherwise."""
    lines: list[str] = []
    folders: set[str] = set()
    for file in parts.corpus.files.get("all", ()):
        folders.update(file.relative_to(parts.folder).parts[:-1])
    merged = sorted(name for name in folders if name.lower() in SPLIT_NAMES)
    if merged:
        names = ", ".join(merged)
        lines.append(f"check: the folders {names} are read as one; `files` can name them as splits")
    return lines


def _splits(parts: Parts, trial: Attempt) -> str:
    """The spec's `splits`, by groups where some group has several documents."""
    files, documents = parts.corpus.files, trial.documents
    if "validation" in files:
        return "official"
    grouped = len({d.group for d in documents}) < len(documents) and not parts.folds
    by_group = ", by: group" if grouped else ""
    if "train" not in files:
        return f"{{ratios: [0.8, 0.1, 0.1], seed: 42, method: datasets{by_group}}}"
    folds = f"fold_files: {parts.folds}, " if parts.folds else ""
    train = {d.group if grouped else d.id for d in documents if d.split == "train"}
    carve = f"validation_from_train_tail: {max(1, len(train) // 10)}"
    return f"{{{folds}{carve}{by_group}}}  # check: the end of train, about a tenth"


def _filled_in(
    parts: Parts, trial: Attempt, task: str, language: str, reader: Mapping[str, Any]
) -> str:
    """The template, without counts."""
    proposal, folder = trial.proposal, parts.folder.resolve()
    kind = get_kind(proposal.type)
    unused = f"; not read: {_names(proposal.unused)}" if proposal.unused else ""
    primary, paper = "macro_f1", "micro_f1" if kind.spans else "macro_f1"
    epochs = 20 if kind.spans else 10
    if not kind.counted:
        primary = paper = kind.metrics[0].name
    return f"""# Made by `biobench tasks new`; run it with --data-dir {folder.parent}
id: {task}
version: 1
name: {task.replace("_", " ")}
language: {language}            # check
type: {proposal.type}
source:
  folder: {flow(folder.name)}
  files: {flow(parts.names)}
reader: {flow(reader)}  # check{unused}
labels: {flow(sorted(trial.labels))}
splits: {_splits(parts, trial)}
unit: {proposal.unit}
seeds: 42-46
protocol: {{max_length: 512, long_documents: truncate}}
training: {{epochs: {epochs}, learning_rate: 5e-5, batch_size: 16, weight_decay: 0.01}}
head: {{kind: {kind.head}}}
metric: {{primary: {primary}, paper: {paper}}}
gate: {{expect: text_informative}}
{OPEN}
licence: unknown        # fill in
homepage: {HOMEPAGE}   # fill in
citation: unknown       # fill in
"""


def _facts(source: CountedSource, findings: list[Finding]) -> str:
    """Counts and findings as YAML.

    Findings that come from how the data is read or annotated are not declared as known: they stay
    alarms until the user has looked.
    """
    lines = ["counts:                 # check: against the corpus's documentation"]
    for split in SPLITS:
        counts = {name: number for name, number in source.counts[split].items() if number}
        lines.append(f"  {split}: {flow(counts)}")
    numbers = {finding.name: finding.number for finding in findings if finding.of_the_corpus}
    look = "  # check: look at each, `biobench data verify`" if numbers else ""
    return "\n".join([*lines, f"findings: {flow(numbers)}{look}"]) + "\n"


def recounted(task: LoadedTask, data_dir: Path) -> str:
    """The spec's text with the counts and findings of its data, in place of what it has of them.
    Findings that are no fact of the corpus stay as the spec declares them.
    """
    block = r"(?m)^(counts|findings|# counts and findings):.*\n?((?![\w#\"']).*\n?)*"
    text = re.sub(block, "", task.path.read_text(encoding="utf-8"))
    source = read_counted(task, data_dir)
    findings = audit(task.spec, source.documents, source.labels, task.spec.findings)
    for finding in findings:
        finding.of_the_corpus |= not finding.alarms
    return text.rstrip("\n") + "\n" + _facts(source, findings)


_PLAIN = re.compile(r"(?!(?i:true|false|null)\Z)[A-Za-z_][\w.-]*")


def flow(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)
