"""A first task spec from data files: what they are is read from them (`biobench.data.sniff`)."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biobench.data.catalog import LoadedTask, load_task, spec_paths
from biobench.data.checks.findings import Finding, audit
from biobench.data.drafted_splits import drafted_splits, gate_remark
from biobench.data.fetch import fetch_named
from biobench.data.load import CountedSource, read_counted
from biobench.data.locate import HOMEPAGE
from biobench.data.sniff import Attempt, Wanted, sniff
from biobench.data.sniff.base import first_names
from biobench.data.sniff.languages import check_language, language_of
from biobench.data.sniff.parts import SPLIT_NAMES, Parts, find_parts, name_files
from biobench.data.sniff.persons import signs_of_persons
from biobench.errors import BioBenchError, DataFormatError, UsageError
from biobench.kinds import get_kind
from biobench.schema.source import HubSource
from biobench.schema.task import SPLITS

_MOST_SHOWN = 12
"""Labels that are printed with their numbers."""
_IDS: tuple[dict[str, str], ...] = ({}, {"ids": "split_and_name"}, {"ids": "repeated"})
"""Reader options for ids that may repeat, in the order in which they are tried."""
_OPEN = "access: open            # check: agreement, if not anybody may read the data"
_AGREEMENT = """access: agreement       # check: {reason}; open, if anybody may read the data
obtain: {{needs: unknown, pages: [], steps: []}}   # fill in"""


@dataclass(frozen=True, slots=True)
class Draft:
    """A first spec. detected: what the data was taken for, one line each. data_dir: for the next
    commands.
    """

    text: str
    detected: tuple[str, ...]
    data_dir: Path


@dataclass(slots=True)
class _Corpus:
    """What was found of a corpus before its spec is written. personal: why it may be about persons;
    empty where nothing says so. hub: where it was fetched from.
    """

    layout: Parts
    trial: Attempt
    task_id: str
    language: str
    personal: str
    hub: HubSource | None
    data_dir: Path
    """That is, or will be, given as --data-dir; the task's folder lies below it."""
    splits: str = field(init=False)

    def __post_init__(self) -> None:
        self.splits = drafted_splits(self.layout, self.trial.documents, self.trial.proposal.type)


def scaffold(
    path: str | Path,
    task_id: str,
    *,
    language: str | None = None,
    wanted: Wanted | None = None,
    clinical: bool = False,
    hub: HubSource | None = None,
    data_dir: str | Path | None = None,
) -> Draft:
    """A task for the data file, or the folder, at `path`, with the counts and findings of a first
    reading.

    Each way to read the content is tried on all of it; the one that loses least is kept. Files or
    folders called train, dev and test are taken as splits; without a dev part, validation is cut
    from the end of train; a single file is split so that the gate can judge the test part. wanted:
    columns, not to be guessed. clinical: the texts are patients'. language: None takes English or
    French, by the texts. hub: where the files were fetched from. data_dir: the data folder
    (default: the one that holds the task's). Raises UsageError when there is no such file or it
    lies elsewhere, or `task_id` or `language` is none,
    DataFormatError with file and line when nothing reads cleanly.
    """
    path = Path(path)
    _check_id(task_id)
    if language is not None:
        check_language(language)
    if not path.exists():
        hint = "give a data file, a folder with train, dev and test, or hub:ORG/NAME"
        raise UsageError(f"there is no file '{path}'", hint=hint)
    layout = find_parts(path)
    trial = sniff(layout.corpus, wanted or Wanted())
    if trial.proposal.files is not None:
        layout = name_files(layout, trial.proposal.files)
    personal = signs_of_persons(trial.proposal.columns, trial.documents)
    corpus = _Corpus(
        layout=layout,
        trial=trial,
        task_id=task_id,
        language=language or language_of(trial.documents),
        personal="--clinical" if clinical else personal,
        hub=hub,
        data_dir=_data_dir(layout.folder.resolve(), data_dir),
    )
    text, task, source = _read_as_drafted(corpus)
    findings = audit(task.spec, source.documents, source.labels, {})
    return Draft(
        text=text + _facts(source, findings),
        detected=tuple(_detected(corpus, source, findings)),
        data_dir=corpus.data_dir,
    )


def _data_dir(folder: Path, asked: str | Path | None) -> Path:
    """What is asked for where the task's folder lies below it, else the folder above."""
    if asked is None:
        return folder.parent
    data_dir = Path(asked).expanduser().resolve()
    if data_dir not in folder.parents:
        raise UsageError(
            f"{folder} does not lie below --data-dir {asked}",
            hint=f"leave --data-dir out, or give {folder.parent}",
        )
    return data_dir


def scaffold_named(
    name: str, task_id: str, revision: str | None, data_dir: str | Path | None, **options: Any
) -> Draft:
    """A task for `hub:ORG/NAME[:CONFIG]`, fetched into a folder of its own below `data_dir`.

    options: of `scaffold`. Raises what `fetch_named` and `scaffold` raise.
    """
    _check_id(task_id)
    hub, folder = fetch_named(name, revision, data_dir)
    return scaffold(folder, task_id, hub=hub, **options)


def _check_id(task_id: str) -> None:
    if not re.fullmatch(r"[a-z0-9_]+", task_id):
        hint = "use lower-case letters, digits and underscores, such as my_task"
        raise UsageError(f"'{task_id}' is not a task id", hint=hint)
    if task_id in spec_paths():
        raise UsageError(f"'{task_id}' is a shipped task", hint="give yours another --id")


def _read_as_drafted(corpus: _Corpus) -> tuple[str, LoadedTask, CountedSource]:
    """(the spec without facts, the task, its data), with `ids` where its ids repeat. Raises what
    reading raises, with the reader in the hint.
    """
    proposal = corpus.trial.proposal
    reader = proposal.reader
    with tempfile.TemporaryDirectory() as aside:
        spec = Path(aside) / f"{corpus.task_id}.yaml"
        for ids in _IDS:
            proposal.reader = reader | ids
            draft = _without_facts(corpus)
            spec.write_text(draft, encoding="utf-8")
            try:
                task = load_task(spec)
                return draft, task, read_counted(task, corpus.data_dir)
            except BioBenchError as error:
                problem = error
            if "reader.ids" not in problem.hint:
                break
    raise _of_the_data(problem, spec, corpus.layout, reader)


def _of_the_data(
    error: BioBenchError, spec: Path, layout: Parts, reader: Mapping[str, Any]
) -> BioBenchError:
    """The error with the data's file in place of a draft that nobody sees, and how it was read."""
    file, line = error.file, error.line
    if file is None or Path(file) == spec:
        file, line = str(layout.corpus.paths[0]), None
    hint = f"{error.hint}; it was read with `reader: {flow(reader)}`"
    return DataFormatError(error.what, hint=hint, file=file, line=line)


def _detected(corpus: _Corpus, source: CountedSource, findings: list[Finding]) -> list[str]:
    """What the data was taken for, what reading it gave, and what the user should look at."""
    lines = [
        *_guessed(corpus),
        *_counted(source),
        *gate_remark(corpus.layout, source.documents, corpus.trial.proposal.type),
        *_merged_folders(corpus.layout),
    ]
    lines += [f"finding: {finding.line}" for finding in findings]
    if not findings:
        lines.append("findings: none")
    if corpus.hub is not None:
        name = f"{corpus.hub.repo}, configuration {corpus.hub.config}"
        lines.insert(0, f"hub: {name}, commit {corpus.hub.revision}")
    access = "open (--clinical where the texts are patients')"
    if corpus.personal:
        access = f"agreement ({corpus.personal})"
    return [*lines, f"access: {access}"]


def _guessed(corpus: _Corpus) -> list[str]:
    """What the data was taken for."""
    proposal, labels, layout = corpus.trial.proposal, corpus.trial.labels, corpus.layout
    numbered = [f"{label} {number}" for label, number in sorted(labels.items())]
    shown = ", ".join(first_names(numbered, _MOST_SHOWN))
    splits: list[str] = []
    for name, files in layout.names.items():
        listed = files if isinstance(files, str) else f"{len(files)} files"
        splits.append(f"{name} = {listed}")
    lines = [
        f"type: {proposal.type}",
        f"reader: {flow(proposal.reader)}",
        *proposal.seen,
        f"labels: {len(labels)}: {shown}",
        f"splits: {', '.join(splits)}",
    ]
    if corpus.splits != "official":
        lines.append(f"drawn: {corpus.splits}")
    further = {
        "columns": _names(proposal.columns),
        "not read": _names(proposal.unused),
        "files not used": ", ".join(layout.unused),
    }
    lines += [f"{what}: {names}" for what, names in further.items() if names]
    return lines


def _names(columns: Iterable[str]) -> str:
    return ", ".join(name.strip() or "(without a name)" for name in columns)


def _counted(source: CountedSource) -> list[str]:
    """Documents of each split, and of mentions those that are in a score and those that are not."""
    sizes: list[str] = []
    mentions = dropped = 0
    for split in SPLITS:
        counts = source.counts[split]
        sizes.append(f"{split} {counts['documents']}")
        mentions += counts.get("mentions", 0)
        dropped += sum(source.unexpressed.get(split, {}).values())
    lines = [f"documents: {', '.join(sizes)}"]
    if "mentions" in source.counts["train"]:
        lines.append(f"mentions: {mentions} kept, {dropped} dropped")
    return lines


def _merged_folders(layout: Parts) -> list[str]:
    """A line where folders that are called like splits are read as one."""
    folders: set[str] = set()
    for file in layout.corpus.files.get("all", ()):
        folders.update(file.relative_to(layout.folder).parts[:-1])
    merged = ", ".join(sorted(name for name in folders if name.lower() in SPLIT_NAMES))
    if not merged:
        return []
    return [f"check: the folders {merged} are read as one; `files` can name them as splits"]


def _without_facts(corpus: _Corpus) -> str:
    """The spec without counts and findings."""
    proposal, layout, hub = corpus.trial.proposal, corpus.layout, corpus.hub
    kind = get_kind(proposal.type)
    unused = f"; not read: {_names(proposal.unused)}" if proposal.unused else ""
    primary, paper, epochs = "macro_f1", "macro_f1", 10
    if kind.spans:
        paper, epochs = "micro_f1", 20
    if not kind.counted:
        primary = paper = kind.metrics[0].name
    access, origin, homepage = _OPEN, "", f"{HOMEPAGE}   # fill in"
    if corpus.personal:
        access = _AGREEMENT.format(reason=corpus.personal)
    if hub is not None:
        place = {"repo": hub.repo, "config": hub.config, "revision": hub.revision}
        origin = f"\n  hub: {flow(place)}"
        homepage = f"https://huggingface.co/datasets/{hub.repo}"
    return f"""# Made by `biobench tasks new`; run it with --data-dir {corpus.data_dir}
id: {corpus.task_id}
version: 1
name: {corpus.task_id.replace("_", " ")}
language: {corpus.language}            # check
type: {proposal.type}
source:
  folder: {flow(layout.folder.resolve().relative_to(corpus.data_dir).as_posix())}
  files: {flow(layout.names)}{origin}
reader: {flow(proposal.reader)}  # check{unused}
labels: {flow(sorted(corpus.trial.labels))}
splits: {corpus.splits}
unit: {proposal.unit}
seeds: 42-46
protocol: {{max_length: 512, long_documents: truncate}}
training: {{epochs: {epochs}, learning_rate: 5e-5, batch_size: 16, weight_decay: 0.01}}
head: {{kind: {kind.head}}}
metric: {{primary: {primary}, paper: {paper}}}
gate: {{expect: text_informative}}
{access}
licence: unknown        # fill in
homepage: {homepage}
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
    known = f"findings: {flow(numbers)}"
    if numbers:
        known += "  # check: look at each, `biobench data verify`"
    return "\n".join([*lines, known, ""])


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
        items = [f"{flow(name)}: {flow(item)}" for name, item in value.items()]
        return f"{{{', '.join(items)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)
