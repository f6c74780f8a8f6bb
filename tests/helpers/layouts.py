"""A few sentences in the native layout of every reader, so that one test reads the same content by
all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.parquet as pq

from biobench.data.catalog import LoadedTask, load_task
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


def _put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))


Rows = Sequence[Row]


def _files(*names: str) -> str:
    """The value of `files`, several names of a split as a list."""
    lists = {split: [name.format(split) for name in names] for split in SPLITS}
    return json.dumps({split: own if len(own) > 1 else own[0] for split, own in lists.items()})


def _by_split(name: str, form: Callable[[Rows], str]) -> tuple[str, Callable[[Path, Rows], None]]:
    """A file for each split, `name` with the split in it: the value of `files`, and what writes
    them.
    """

    def write(folder: Path, content: Rows) -> None:
        for split, own in _splits(content):
            _put(folder, name.format(split), form(own))

    return _files(name), write


def _splits(content: Rows) -> list[tuple[str, list[Row]]]:
    return [(split, [r for r in content if r.split == split]) for split in SPLITS]


def _iob(content: Rows) -> str:
    blocks = []
    for row in content:
        tagged = [(word, "O") for word in row.head.split(" ")]
        tagged += [
            (word, f"{'I' if i else 'B'}-{row.label}")
            for i, word in enumerate(row.surface.split(" "))
        ]
        tagged += [(word, "O") for word in row.tail.split(" ")]
        blocks.append(
            f"###MEDLINE:{row.id}\n\n" + "".join(f"{word}\t{tag}\n" for word, tag in tagged)
        )
    return "\n".join(blocks)


def _pubtator(content: Rows) -> str:
    return "\n".join(
        f"{r.id}|t|{r.head}\n{r.id}|a|{r.surface} "
        f"{r.tail}\n{r.id}\t{r.start}\t{r.end}\t{r.surface}\t{r.label}\tD1\n"
        for r in content
    )


def _brat(folder: Path, content: Rows, note: str = "") -> None:
    for r in content:
        _put(folder, f"{r.split}/{r.id}.txt", f"{r.text}\nNothing more .\n")
        kind = "mention" if note else r.label
        extra = f"#1\t{note} T1\t{r.label}\n" if note else ""
        _put(folder, f"{r.split}/{r.id}.ann", f"T1\t{kind} {r.start} {r.end}\t{r.surface}\n{extra}")


def _mention_table(folder: Path, content: Rows) -> None:
    for r in content:
        _put(folder, f"texts/{r.id}.txt", f"{r.text}\nNothing more .\n")
    _put(folder, "table.csv", "doc,code\n" + "".join(f"{r.id}.ann,{r.label}\n" for r in content))


def _csv_join(folder: Path, content: Rows) -> None:
    label = content[0].label
    _put(
        folder,
        "flags.csv",
        f"key,who,{label},{OTHER}\n" + "".join(f"{r.id},{r.id},1,0\n" for r in content),
    )
    _put(
        folder,
        "notes.csv",
        "key,text\n" + "".join(f'{r.id},"{r.text}\nNothing ""more"" ."\n' for r in content),
    )


def _meddialog(folder: Path, content: Rows) -> None:
    split = {"train": "train", "validation": "dev", "test": "test"}
    lines = [f"{r.id}_q\t{split[r.split]}\t['{r.label}']\n" for r in content]
    _put(folder, "labels.tsv", "id\tsplit\tlabels\n" + "".join(lines))
    lines = [f"{r.id}_q\t{r.text}\n{r.id}_a\tNothing more .\n" for r in content]
    _put(folder, "texts.tsv", "id\tpost-edited\n" + "".join(lines))


def _paired(folder: Path, content: Rows) -> None:
    for r in content:
        _put(folder, f"texts/{r.id}.txt", f"{r.text}\nNothing more .\n")
        _put(folder, f"labels/{r.id}.txt", f"< {r.label}--deeper < NULL\n")


def _records(folder: Path, content: Rows) -> None:
    for name, masked in (("id.text", False), ("id.res", True)):
        parts = [
            f"\nSTART_OF_RECORD={i}||||1||||\n{r.head} "
            f"{'[**Last Name 1**]' if masked else r.surface} {r.tail}\n"
            "Nothing more .\n||||END_OF_RECORD\n"
            for i, r in enumerate(content)
        ]
        _put(folder, name, "".join(parts))


def _xmi(folder: Path, content: Rows) -> None:
    for r in content:
        units = [len(r.text[:n].encode("utf-16-le")) // 2 for n in (r.start, r.end)]
        space = "".join(f' xmlns:{n}="http://{n}"' for n in ("xmi", "cas", "t"))
        _put(
            folder,
            f"{r.split}/{r.id}.xml",
            f'<?xml version="1.0"?>\n<xmi:XMI{space}>\n<cas:Sofa sofaString={quoteattr(r.text)}/>\n'
            f'<t:Layer begin="{units[0]}" end="{units[1]}"/>\n</xmi:XMI>\n',
        )


def _ddi(folder: Path, content: Rows) -> None:
    for r in content:
        _put(
            folder,
            f"{r.split}/{r.id}.xml",
            f'<?xml version="1.0" encoding="UTF-8"?>\n<document id={quoteattr(r.id)}>\n'
            f'<sentence id="s" text={quoteattr(r.text + " aspirin")}>\n'
            f'<entity id="a" charOffset="{r.start}-{r.end - 1}" text={quoteattr(r.surface)}/>\n'
            f'<entity id="b" charOffset="{len(r.text) + 1}-{len(r.text) + 7}" text="aspirin"/>\n'
            f'<pair id={quoteattr(r.id)} e1="a" e2="b" ddi="true" type={quoteattr(r.label)}/>\n'
            "</sentence>\n</document>\n",
        )


def _mantra(content: Rows) -> str:
    units = "".join(
        f"<document id={quoteattr(r.id)}><unit id={quoteattr(r.id)}><text>{escape(r.text)}</text>"
        f'<e offset="{r.start}" len="{len(r.surface)}" '
        f"grp={quoteattr(r.label)}/></unit></document>\n"
        for r in content
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Corpus>\n{units}</Corpus>\n'


def _deft(content: Rows) -> str:
    sets = "".join(
        f'<ensemble id="{1 + n}" cible="2"><source>{escape(r.text)}</source><cible '
        f'num="1">one</cible>'
        f'<cible num="2">{escape(r.surface)}</cible><cible num="3">three</cible></ensemble>\n'
        for n, r in enumerate(content)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<corpus>\n{sets}</corpus>\n'


def _scored(folder: Path, content: Rows) -> None:
    for split, own in _splits(content):
        table = "".join(f"{r.id}_a\t{r.id}_b\t{i % 6}.5\n" for i, r in enumerate(own))
        _put(folder, f"{split}.tsv", f"first\tsecond\tscore\n{table}")
        texts = {
            f"{r.id}_{side}": r.text if side == "b" else "Before ." for r in own for side in "ab"
        }
        _put(folder, f"{split}.json", json.dumps(texts, ensure_ascii=False, indent=1))


def _chemprot(folder: Path, content: Rows) -> None:
    for split, own in _splits(content):
        texts = [f"{r.id}\tTitle\t{r.text} with aspirin\n" for r in own]
        _put(folder, f"{split}_abstracts.tsv", "".join(texts))
        entities = []
        for r in own:
            aspirin = 6 + len(r.text) + 6
            entities.append(f"{r.id}\tT1\tGENE-Y\t{6 + r.start}\t{6 + r.end}\t{r.surface}\n")
            entities.append(f"{r.id}\tT2\tCHEMICAL\t{aspirin}\t{aspirin + 7}\taspirin\n")
        _put(folder, f"{split}_entities.tsv", "".join(entities))
        _put(
            folder,
            f"{split}_gold.tsv",
            "".join(f"{r.id}\t{r.label}\tArg1:T2\tArg2:T1\n" for r in own),
        )


def _choices(content: Rows) -> str:
    return json.dumps(
        [
            {"id": r.id, "q": r.text, "o": {"a": "one", "b": r.surface}, "right": ["b"]}
            for r in content
        ],
        ensure_ascii=False,
        indent=1,
    )


def _jsonl(field: Callable[[Row], dict[str, object]]) -> Callable[[Rows], str]:
    return lambda content: "".join(
        json.dumps({"id": r.id, **field(r)}, ensure_ascii=False) + "\n" for r in content
    )


def _tokens(row: Row) -> dict[str, object]:
    lines = [line.split("\t") for line in _iob([row]).splitlines()[2:]]
    return {"tokens": [word for word, _ in lines], "tags": [tag for _, tag in lines]}


def _tsv(content: Rows) -> str:
    return "id\ttext\tlabel\n" + "".join(f"{r.id}\t{r.text}\t{r.label}\n" for r in content)


def _parquet(folder: Path, content: Rows) -> None:
    for split, own in _splits(content):
        rows = [{"id": r.id, "text": r.text, "label": r.label} for r in own]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{split}.parquet")


def _span_tables(folder: Path, content: Rows) -> None:
    for split, own in _splits(content):
        texts = [{"report": r.id, "full_text": r.text} for r in own]
        mentions = [
            {
                "report": r.id,
                "begin": r.start,
                "end": r.end,
                "span_text": r.surface,
                "attribute_Categorie": r.label,
            }
            for r in own
        ]
        pq.write_table(pa.Table.from_pylist(texts), folder / f"texts_{split}.parquet")
        pq.write_table(pa.Table.from_pylist(mentions), folder / f"spans_{split}.parquet")


def _projected(folder: Path, content: Rows) -> None:
    for split, own in _splits(content):
        lines = [line for line in _iob(own).split("\n") if not line.startswith("###")]
        _put(folder, f"{split}.tsv", "\n".join(lines).lstrip("\n"))
        _put(folder / "original", f"{split}.txt", _pubtator(own))


@dataclass(frozen=True)
class Layout:
    """What a reader reads. labels: those of the task where the layout fixes them. named: ids are
    free texts of the file. binary: not text, so that its bytes say nothing of line ends or of an
    encoding.
    """

    type: str
    reader: str
    files: str
    write: Callable[[Path, Rows], None]
    labels: tuple[str, ...] = ()
    named: bool = True
    binary: bool = False
    ratios: bool = False
    more: str = ""

    def task(self, format: str, folder: Path, label: str = LABEL) -> LoadedTask:
        """The spec, written beside the data folder, with `label` and another."""
        metric = {"regression": "spearman", "multiple_choice": "hamming"}.get(self.type, "macro_f1")
        labels = json.dumps(list(self.labels or (label, OTHER)), ensure_ascii=False)
        splits = (
            "{ratios: [0.4, 0.3, 0.3], seed: 1, method: datasets}" if self.ratios else "official"
        )
        options = (
            f", {self.reader.replace('$LABEL', json.dumps(label, ensure_ascii=False))}"
            if self.reader
            else ""
        )
        path = write_spec(
            folder / f"{format}.yaml",
            "scale: [0, 6]" if self.type == "regression" else "",
            id=f"made_{format}",
            type=self.type,
            source=local("corpus", self.files, self.more),
            reader=f"{{format: {format}{options}}}",
            labels=labels,
            splits=splits,
            metric=f"{{primary: {metric}, paper: {metric}}}",
        )
        return load_task(path)


_PAIR = "{{texts: '{}', labels: '{}'}}"
_CHOICES = "layout: list, id: id, question: q, options: o, right: right"
_COLUMNS = "columns: {id: id, text: text, label: label}"
_TEXTS = _by_split("{}.jsonl", _jsonl(lambda r: {"text": r.text, "label": r.label}))
_SPANS = _by_split(
    "{}.jsonl", _jsonl(lambda r: {"text": r.text, "spans": [[r.start, r.end, r.label]]})
)
_ORIGINAL = f"  original: {{folder: corpus/original, files: {_files('{}.txt')}}}\n"
_CHEMPROT = _files("{}_abstracts.tsv", "{}_entities.tsv", "{}_gold.tsv")
_ONE, _SEVERAL = "single_label", "multi_label"

LAYOUTS: dict[str, Layout] = {
    "brat": Layout("span_ner", "", _files("{}/*.txt"), _brat),
    "brat_codes": Layout(
        _SEVERAL, "note: code", _files("{}/*.txt"), lambda f, r: _brat(f, r, "code")
    ),
    "chemprot": Layout(_ONE, "", _CHEMPROT, _chemprot),
    "choices": Layout(
        "multiple_choice", _CHOICES, *_by_split("{}.json", _choices), labels=("a", "b")
    ),
    "csv_join": Layout(
        _SEVERAL,
        "key: key, text: text, group: who",
        _PAIR.format("notes.csv", "flags.csv"),
        _csv_join,
        ratios=True,
    ),
    "ddi": Layout(_ONE, "negative: Other", _files("{}/*.xml"), _ddi),
    "deft2020": Layout(
        "text_pair", "task: 2", *_by_split("{}.xml", _deft), labels=("1", "2", "3"), named=False
    ),
    "iob": Layout("token_ner", "", *_by_split("{}.tsv", _iob)),
    "json": Layout(_ONE, "layout: lines, text: text, label: label, id: id", *_TEXTS),
    "json_spans": Layout("span_ner", "id: id", *_SPANS),
    "json_tokens": Layout("token_ner", "id: id", *_by_split("{}.jsonl", _jsonl(_tokens))),
    "mantra": Layout("token_ner", "", *_by_split("{}.xml", _mantra)),
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
        _ONE, _COLUMNS.replace("label:", "labels:"), _files("{}.parquet"), _parquet, binary=True
    ),
    "projected": Layout(
        "token_ner", "original: pubtator, take: ids", _files("{}.tsv"), _projected, more=_ORIGINAL
    ),
    "pubtator": Layout("span_ner", "", *_by_split("{}.txt", _pubtator)),
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
        _scored,
        labels=("similarity",),
    ),
    "span_tables": Layout(
        "span_ner",
        "label: attribute_Categorie",
        _files("texts_{}.parquet", "spans_{}.parquet"),
        _span_tables,
        binary=True,
    ),
    "tsv": Layout(_ONE, _COLUMNS, *_by_split("{}.tsv", _tsv)),
    "xmi": Layout("span_ner", "types: {Layer: $LABEL}", _files("{}/*.xml"), _xmi),
}
"""Format to what it reads; every reader but those that generate their data."""
