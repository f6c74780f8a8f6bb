"""The works that a set of tasks cites, as BibTeX: each work once, with the tasks that need it."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from biobench.reporting.tasks import TaskInfo
from biobench.schema.task import TaskSpec

_LABEL = re.compile(r"(?:(?<=\. )|^)[A-Z][a-z]+(?: [a-z]+)?: (?=[A-Z])")
"""``Token files: ``, ``Split: ``: what a further work was taken for."""
_WORK = re.compile(
    r"(?P<authors>[^.]*?(?:\bet al)?)\. (?P<title>.+?)\. "
    r"(?P<venue>[^.]*?(?:\([^)]*\))?), (?P<year>(?:19|20)\d\d)\.?(?P<rest>.*)$"
)
_DOI = re.compile(r"\bdoi:(10\.\S+?)[.,;]?(?=\s|$)")
_ARXIV = re.compile(r"\barXiv:(\d{4}\.\d{4,5})")


@dataclass(frozen=True, slots=True)
class CitedWork:
    """One cited work. fields: BibTeX field -> plain text; a text that could not be taken apart is
    in `note`.
    """

    key: str
    fields: tuple[tuple[str, str], ...]


def bibtex(infos: Iterable[TaskInfo]) -> str:
    """Entries in order of first use. A citation in an unknown form becomes a ``note`` as it
    stands."""
    tasks_of: dict[CitedWork, list[str]] = defaultdict(list)
    for info in infos:
        for work in works_of(info):
            tasks_of[work].append(info.id)
    times: Counter[str] = Counter()
    entries = []
    for work, tasks in tasks_of.items():
        times[work.key] += 1
        key = work.key
        if times[key] > 1:
            key = f"{key}_{times[key]}"
        fields = [*work.fields, ("keywords", f"biobench: {', '.join(tasks)}")]
        lines = [f"  {name} = {{{_value(name, text)}}}," for name, text in fields]
        entries.append("\n".join([f"@misc{{{key},", *lines, "}\n"]))
    return "\n".join(entries)


def works_of(info: TaskInfo) -> Iterator[CitedWork]:
    """The works of one task's citation; none for a task whose spec is not available or names
    none."""
    if info.spec is None:
        return
    text = " ".join(info.spec.citation.split())
    for citation in _LABEL.split(text):
        if citation.strip():
            yield _work(citation.strip(), info.id, info.spec)


def _work(text: str, task: str, spec: TaskSpec) -> CitedWork:
    match = _WORK.match(text)
    if match is None:
        fields = [("title", spec.name), ("note", text)]
        if spec.homepage:
            fields.append(("url", spec.homepage))
        return CitedWork(f"biobench_{task}", tuple(fields))
    names = match["authors"].removesuffix(" et al").split(", ")
    authors = " and ".join(names)
    if match["authors"].endswith(" et al"):
        authors += " and others"
    fields = [
        ("author", authors),
        ("title", match["title"]),
        ("howpublished", match["venue"]),
        ("year", match["year"]),
    ]
    doi = _DOI.search(match["rest"])
    arxiv = _ARXIV.search(match["rest"])
    if doi:
        fields.append(("doi", doi[1]))
    if arxiv:
        fields += [("eprint", arxiv[1]), ("archiveprefix", "arXiv")]
    title_word = re.search(r"[a-z]{4,}", _ascii(match["title"]).lower())
    surname = re.sub(r"[^a-z]", "", _ascii(names[0]).lower())
    key = f"{surname or 'anonymous'}{match['year']}{title_word[0] if title_word else 'work'}"
    return CitedWork(key, tuple(fields))


def _value(field: str, text: str) -> str:
    """What stands between the braces of a field."""
    if field in ("doi", "url", "eprint"):
        return _bare(text)  # BibTeX styles read it letter by letter: an escape would break it
    if field == "title":
        return f"{{{escaped(text)}}}"  # capitals stay
    if field != "author":
        return escaped(text)
    authors = []
    for author in text.split(" and "):
        name = escaped(author)
        # a surname of several words is one name
        authors.append(f"{{{name}}}" if " " in author else name)
    return " and ".join(authors)


def _bare(text: str) -> str:
    line = re.sub(r"[\\{}]", "", " ".join(text.split()))
    return "".join(c for c in line if unicodedata.category(c)[0] != "C")


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def escaped(text: str) -> str:
    """Text inside a braced field: no brace or command of its own, LaTeX's special characters set as
    they are.
    """
    return re.sub(r"([&%$#_])", r"\\\1", _bare(text))
