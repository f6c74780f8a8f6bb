"""The works that a set of tasks cites, as BibTeX: each work once, with the tasks that need it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from biobench.report.tasks import TaskInfo

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
    tasks_of: dict[CitedWork, list[str]] = {}
    for info in infos:
        for work in works_of(info):
            tasks_of.setdefault(work, []).append(info.id)
    keys: dict[str, int] = {}
    entries = []
    for work, tasks in tasks_of.items():
        keys[work.key] = keys.get(work.key, 0) + 1
        key = work.key if keys[work.key] == 1 else f"{work.key}_{keys[work.key]}"
        fields = [*work.fields, ("keywords", f"biobench: {', '.join(tasks)}")]
        lines = [f"  {name} = {{{_value(name, text)}}}," for name, text in fields]
        entries.append("\n".join([f"@misc{{{key},", *lines, "}"]) + "\n")
    return "\n".join(entries)


def works_of(info: TaskInfo) -> Iterator[CitedWork]:
    """The works of one task's citation; none for a task whose spec is not available or names
    none."""
    spec = info.spec
    if spec is None or not spec.citation.strip():
        return
    text = " ".join(spec.citation.split())
    for part in (p.strip() for p in _LABEL.split(text)):
        if part:
            yield _work(part, info)


def _work(text: str, info: TaskInfo) -> CitedWork:
    assert info.spec is not None  # the caller has looked
    match = _WORK.match(text)
    if match is None:
        url = [("url", info.spec.homepage)] if info.spec.homepage else []
        return CitedWork(f"biobench_{info.id}", (("title", info.spec.name), ("note", text), *url))
    names = match["authors"].removesuffix(" et al").split(", ")
    authors = " and ".join(names)
    if match["authors"].endswith(" et al"):
        authors += " and others"
    fields = [("author", authors), ("title", match["title"])]
    fields += [("howpublished", match["venue"]), ("year", match["year"])]
    doi, arxiv = _DOI.search(match["rest"]), _ARXIV.search(match["rest"])
    if doi:
        fields.append(("doi", doi[1]))
    if arxiv:
        fields += [("eprint", arxiv[1]), ("archiveprefix", "arXiv")]
    word = next((w for w in re.findall(r"[a-z]{4,}", _ascii(match["title"]).lower())), "work")
    surname = re.sub(r"[^a-z]", "", _ascii(names[0]).lower()) or "anonymous"
    return CitedWork(f"{surname}{match['year']}{word}", tuple(fields))


def _value(field: str, text: str) -> str:
    """What stands between the braces of a field."""
    if field in ("doi", "url", "eprint"):
        return _bare(
            text
        )  # read letter by letter by BibTeX styles: an escape would break the address
    if field == "title":
        return f"{{{escaped(text)}}}"  # capitals stay
    if field == "author":
        # a surname of several words is one name
        return " and ".join(
            f"{{{escaped(a)}}}" if " " in a else escaped(a) for a in text.split(" and ")
        )
    return escaped(text)


def _bare(text: str) -> str:
    return "".join(
        c for c in " ".join(text.split()) if c not in "\\{}" and unicodedata.category(c)[0] != "C"
    )


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def escaped(text: str) -> str:
    """Text inside a braced field: no brace or command of its own, LaTeX's special characters set as
    they are.
    """
    return "".join(f"\\{c}" if c in "&%$#_" else c for c in _bare(text))
