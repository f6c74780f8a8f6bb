"""A few sentences in the native layout of every reader, so that one test reads the same content by
all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from biobench.data.catalog import LoadedTask, load_task
from tests.helpers.reading import parquet
from tests.helpers.spec_make import local, write_spec

SPLITS = ("train", "validation", "test")
LABEL, OTHER = "Sign", "Other"


class Row(NamedTuple):
    """One sentence: its id, what stands before its only mention, the mention, what follows, its
    label and split.
    """

    id: str
    head: str
    surface: str
    tail: str
    label: str
    split: str

    @property
    def text(self) -> str:
        """The sentence."""
        return f"{self.head} {self.surface} {self.tail}"

    @property
    def start(self) -> int:
        """First character of the mention."""
        return len(self.head) + 1

    @property
    def end(self) -> int:
        """Past its last character."""
        return self.start + len(self.surface)


def rows(mark: str = "", label: str = LABEL, ids: str = "", count: int = 9) -> list[Row]:
    """`count` sentences in turns of the splits; `mark` stands in each text and mention, `ids` in
    each id.
    """
    return [
        Row(
            f"{1000 + i}{ids}",
            f"Case{i}{mark} brings",
            f"fever{mark}",
            f"since day {i} .",
            label,
            SPLITS[i % 3],
        )
        for i in range(count)
    ]


Rows = Sequence[Row]
Content = Mapping[str, str | bytes]
"""File name to content."""
Make = Callable[[Rows], Content]


def _files(*names: str) -> str:
    """The value of `files`, the names of a split as a list."""
    return json.dumps({split: [name.format(split) for name in names] for split in SPLITS})


def _by_split(**forms: Callable[[Rows], str | bytes]) -> Make:
    """A file `SPLIT` with each of these endings, for each split."""

    def make(content: Rows) -> Content:
        made: dict[str, str | bytes] = {}
        for split in SPLITS:
            split_rows = [row for row in content if row.split == split]
            made |= {f"{split}.{ending}": form(split_rows) for ending, form in forms.items()}
        return made

    return make


def _by_row(**forms: Callable[[Row], str]) -> Make:
    """A file `SPLIT/ID` with each of these endings, for each sentence."""

    def make(content: Rows) -> Content:
        return {
            f"{row.split}/{row.id}.{ending}": form(row)
            for row in content
            for ending, form in forms.items()
        }

    return make


def _lines(form: Callable[[Row], str], header: str = "") -> Callable[[Rows], str]:
    """A line for each sentence, below the header."""
    return lambda content: "\n".join([*header.splitlines(), *map(form, content), ""])


def _jsonl(field: Callable[[Row], dict[str, object]]) -> Callable[[Rows], str]:
    return _lines(lambda row: json.dumps({"id": row.id, **field(row)}, ensure_ascii=False))


def _table(field: Callable[[Row], dict[str, object]]) -> Callable[[Rows], bytes]:
    return lambda content: parquet([field(row) for row in content])


def _tagged(row: Row) -> list[tuple[str, str]]:
    """The words and their tags."""
    before, after = (part.split(" ") for part in (row.head, row.tail))
    tags = ["O"] * len(before) + [f"B-{row.label}"] + ["O"] * len(after)
    return list(zip([*before, row.surface, *after], tags, strict=True))


def _sentence(row: Row) -> str:
    return "".join(f"{word}\t{tag}\n" for word, tag in _tagged(row))


_iob = _lines(lambda row: f"###MEDLINE:{row.id}\n\n{_sentence(row)}")
_pubtator = _lines(
    lambda row: (
        f"{row.id}|t|{row.head}\n{row.id}|a|{row.surface} {row.tail}\n"
        f"{row.id}\t{row.start}\t{row.end}\t{row.surface}\t{row.label}\tD1\n"
    )
)


def _text(row: Row) -> str:
    return f"{row.text}\nNothing more .\n"


def _ann(row: Row) -> str:
    return f"T1\t{row.label} {row.start} {row.end}\t{row.surface}\n"


def _noted(row: Row) -> str:
    return f"T1\tmention {row.start} {row.end}\t{row.surface}\n#1\tcode T1\t{row.label}\n"


def _mention_table(content: Rows) -> Content:
    table = _lines(lambda row: f"{row.id}.ann,{row.label}", "doc,code")
    return {"table.csv": table(content)} | {f"texts/{r.id}.txt": _text(r) for r in content}


def _csv_join(content: Rows) -> Content:
    flags = _lines(lambda row: f"{row.id},{row.id},1,0", f"key,who,{content[0].label},{OTHER}")
    notes = _lines(lambda row: f'{row.id},"{row.text}\nNothing ""more"" ."', "key,text")
    return {"flags.csv": flags(content), "notes.csv": notes(content)}


def _meddialog(content: Rows) -> Content:
    splits = {"train": "train", "validation": "dev", "test": "test"}
    labels = _lines(lambda r: f"{r.id}_q\t{splits[r.split]}\t['{r.label}']", "id\tsplit\tlabels")
    texts = _lines(lambda r: f"{r.id}_q\t{r.text}\n{r.id}_a\tNothing more .", "id\tpost-edited")
    return {"labels.tsv": labels(content), "texts.tsv": texts(content)}


def _paired(content: Rows) -> Content:
    labels = {f"labels/{r.id}.txt": f"< {r.label}--deeper < NULL\n" for r in content}
    return labels | {f"texts/{r.id}.txt": _text(r) for r in content}


def _records(content: Rows) -> Content:
    notes = "".join(
        f"\nSTART_OF_RECORD={number}||||1||||\n{_text(row)}||||END_OF_RECORD\n"
        for number, row in enumerate(content)
    )
    return {"id.text": notes, "id.res": notes.replace(content[0].surface, "[**Last Name 1**]")}


def _xmi(row: Row) -> str:
    begin, end = (len(row.text[:n].encode("utf-16-le")) // 2 for n in (row.start, row.end))
    space = "".join(f' xmlns:{n}="http://{n}"' for n in ("xmi", "cas", "t"))
    return (
        f'<?xml version="1.0"?>\n<xmi:XMI{space}>\n<cas:Sofa sofaString={quoteattr(row.text)}/>\n'
        f'<t:Layer begin="{begin}" end="{end}"/>\n</xmi:XMI>\n'
    )


_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def _ddi(row: Row) -> str:
    size = len(row.text)
    return (
        f"{_XML}<document id={quoteattr(row.id)}>\n"
        f'<sentence id="s" text={quoteattr(row.text + " aspirin")}>\n'
        f'<entity id="a" charOffset="{row.start}-{row.end - 1}" text={quoteattr(row.surface)}/>\n'
        f'<entity id="b" charOffset="{size + 1}-{size + 7}" text="aspirin"/>\n'
        f'<pair id={quoteattr(row.id)} e1="a" e2="b" ddi="true" type={quoteattr(row.label)}/>\n'
        "</sentence>\n</document>\n"
    )


def _mantra(content: Rows) -> str:
    unit = _lines(
        lambda row: (
            f"<document id={quoteattr(row.id)}><unit id={quoteattr(row.id)}>"
            f'<text>{escape(row.text)}</text><e offset="{row.start}" len="{len(row.surface)}" '
            f"grp={quoteattr(row.label)}/></unit></document>"
        )
    )
    return f"{_XML}<Corpus>\n{unit(content)}</Corpus>\n"


def _deft(content: Rows) -> str:
    sets = [
        f'<ensemble id="{number}" cible="2"><source>{escape(row.text)}</source>'
        f'<cible num="1">one</cible><cible num="2">{escape(row.surface)}</cible>'
        '<cible num="3">three</cible></ensemble>\n'
        for number, row in enumerate(content, start=1)
    ]
    return f"{_XML}<corpus>\n{''.join(sets)}</corpus>\n"


def _scores(content: Rows) -> str:
    lines = [f"{row.id}_a\t{row.id}_b\t{i % 6}.5\n" for i, row in enumerate(content)]
    return "first\tsecond\tscore\n" + "".join(lines)


def _sides(content: Rows) -> str:
    texts: dict[str, str] = {}
    for row in content:
        texts |= {f"{row.id}_a": "Before .", f"{row.id}_b": row.text}
    return json.dumps(texts, ensure_ascii=False, indent=1)


def _entities(row: Row) -> str:
    aspirin = 6 + len(row.text) + 6
    return (
        f"{row.id}\tT1\tGENE-Y\t{6 + row.start}\t{6 + row.end}\t{row.surface}\n"
        f"{row.id}\tT2\tCHEMICAL\t{aspirin}\t{aspirin + 7}\taspirin"
    )


def _choices(content: Rows) -> str:
    items = [
        {"id": r.id, "q": r.text, "o": {"a": "one", "b": r.surface}, "right": ["b"]}
        for r in content
    ]
    return json.dumps(items, ensure_ascii=False, indent=1)


def _tokens(row: Row) -> dict[str, object]:
    words, tags = zip(*_tagged(row), strict=True)
    return {"tokens": words, "tags": tags}


def _mention(row: Row) -> dict[str, object]:
    offsets = {"begin": row.start, "end": row.end, "span_text": row.surface}
    return {"report": row.id, **offsets, "attribute_Categorie": row.label}


@dataclass(frozen=True)
class Layout:
    """What a reader reads. labels: those of the task where the layout fixes them. named: ids are
    free texts of the file.
    """

    type: str
    reader: str
    files: str
    make: Make
    labels: tuple[str, ...] = ()
    named: bool = True
    ratios: bool = False
    more: str = ""

    def write(self, folder: Path, content: Rows) -> None:
        """The files of the sentences."""
        for name, text in self.make(content).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)

    def task(self, format: str, folder: Path, label: str = LABEL) -> LoadedTask:
        """The spec, written beside the data folder, with `label` and another."""
        metric = {"regression": "spearman", "multiple_choice": "hamming"}.get(self.type, "macro_f1")
        labels = json.dumps(list(self.labels or (label, OTHER)), ensure_ascii=False)
        splits = "official"
        if self.ratios:
            splits = "{ratios: [0.4, 0.3, 0.3], seed: 1, method: datasets}"
        reader = f"{{format: {format}, {self.reader}}}"
        path = write_spec(
            folder / f"{format}.yaml",
            "scale: [0, 6]" if self.type == "regression" else "",
            id=f"made_{format}",
            type=self.type,
            source=local("corpus", self.files, self.more),
            reader=reader.replace("$LABEL", json.dumps(label, ensure_ascii=False)),
            labels=labels,
            splits=splits,
            metric=f"{{primary: {metric}, paper: {metric}}}",
        )
        return load_task(path)


_PAIR = "{{texts: '{}', labels: '{}'}}"
_TEXTS = _files("{}/*.txt")
_COLUMNS = "columns: {id: id, text: text, label: label}"
_ONE, _SEVERAL = "single_label", "multi_label"

LAYOUTS: dict[str, Layout] = {
    "brat": Layout("span_ner", "", _TEXTS, _by_row(txt=_text, ann=_ann)),
    "brat_codes": Layout(_SEVERAL, "note: code", _TEXTS, _by_row(txt=_text, ann=_noted)),
    "chemprot": Layout(
        _ONE,
        "",
        _files("{}.abstracts", "{}.entities", "{}.gold"),
        _by_split(
            abstracts=_lines(lambda row: f"{row.id}\tTitle\t{row.text} with aspirin"),
            entities=_lines(_entities),
            gold=_lines(lambda row: f"{row.id}\t{row.label}\tArg1:T2\tArg2:T1"),
        ),
    ),
    "choices": Layout(
        "multiple_choice",
        "layout: list, id: id, question: q, options: o, right: right",
        _files("{}.json"),
        _by_split(json=_choices),
        labels=("a", "b"),
    ),
    "csv_join": Layout(
        _SEVERAL,
        "key: key, text: text, group: who",
        _PAIR.format("notes.csv", "flags.csv"),
        _csv_join,
        ratios=True,
    ),
    "ddi": Layout(_ONE, "negative: Other", _files("{}/*.xml"), _by_row(xml=_ddi)),
    "deft2020": Layout(
        "text_pair",
        "task: 2",
        _files("{}.xml"),
        _by_split(xml=_deft),
        labels=("1", "2", "3"),
        named=False,
    ),
    "iob": Layout("token_ner", "", _files("{}.tsv"), _by_split(tsv=_iob)),
    "json": Layout(
        _ONE,
        "layout: lines, text: text, label: label, id: id",
        _files("{}.jsonl"),
        _by_split(jsonl=_jsonl(lambda row: {"text": row.text, "label": row.label})),
    ),
    "json_spans": Layout(
        "span_ner",
        "id: id",
        _files("{}.jsonl"),
        _by_split(jsonl=_jsonl(lambda r: {"text": r.text, "spans": [[r.start, r.end, r.label]]})),
    ),
    "json_tokens": Layout(
        "token_ner", "id: id", _files("{}.jsonl"), _by_split(jsonl=_jsonl(_tokens))
    ),
    "mantra": Layout("token_ner", "", _files("{}.xml"), _by_split(xml=_mantra)),
    "meddialog": Layout(_SEVERAL, "", _PAIR.format("texts.tsv", "labels.tsv"), _meddialog),
    "mention_table": Layout(
        _SEVERAL,
        "document: doc, code: code",
        _PAIR.format("texts/*.txt", "table.csv"),
        _mention_table,
        ratios=True,
    ),
    "paired": Layout(
        _SEVERAL,
        "unit: file, lower: false",
        _PAIR.format("texts/*.txt", "labels/*.txt"),
        _paired,
        ratios=True,
    ),
    "parquet": Layout(
        _ONE,
        _COLUMNS.replace("label:", "labels:"),
        _files("{}.parquet"),
        _by_split(parquet=_table(lambda r: {"id": r.id, "text": r.text, "label": r.label})),
    ),
    "projected": Layout(
        "token_ner",
        "original: pubtator, take: ids",
        _files("{}.tsv"),
        _by_split(tsv=_lines(_sentence), txt=_pubtator),
        more=f"  original: {{folder: corpus, files: {_files('{}.txt')}}}\n",
    ),
    "pubtator": Layout("span_ner", "", _files("{}.txt"), _by_split(txt=_pubtator)),
    "records": Layout(
        "token_ner",
        "",
        _PAIR.format("id.text", "id.res"),
        _records,
        labels=("name", "date"),
        named=False,
        ratios=True,
    ),
    "scored_pairs": Layout(
        "regression",
        "first: first, second: second, value: score",
        _files("{}.tsv", "{}.json"),
        _by_split(tsv=_scores, json=_sides),
        labels=("similarity",),
    ),
    "span_tables": Layout(
        "span_ner",
        "label: attribute_Categorie",
        _files("{}.texts", "{}.spans"),
        _by_split(
            texts=_table(lambda row: {"report": row.id, "full_text": row.text}),
            spans=_table(_mention),
        ),
    ),
    "tsv": Layout(
        _ONE,
        _COLUMNS,
        _files("{}.tsv"),
        _by_split(tsv=_lines(lambda r: f"{r.id}\t{r.text}\t{r.label}", "id\ttext\tlabel")),
    ),
    "xmi": Layout("span_ner", "types: {Layer: $LABEL}", _files("{}/*.xml"), _by_row(xml=_xmi)),
}
"""Format to what it reads; every reader but those that generate their data."""
