"""Sentence pairs with a number, where the sentences stand apart from the table of pairs (CLISTER)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from biobench.data.readers.base import ReaderOptions, Request, at, parse_json, read_text, reader
from biobench.data.readers.tsv import rows
from biobench.errors import DataFormatError
from biobench.schema.document import Document


class ScoredPairsOptions(ReaderOptions):
    """Options of format `scored_pairs`: each split names its table of pairs, then its JSON of sentences."""

    format: Literal["scored_pairs"]
    separator: Literal["tab", "comma", "semicolon"] = "tab"
    first: str
    second: str
    value: str
    """Columns with the ids of the two sentences and with the number."""
    id_parts: int | None = None
    """A sentence's key is so many parts of its id, parted by `_`; null: the whole id."""


@reader(ScoredPairsOptions)
def read_scored_pairs(request: Request) -> Iterator[Document]:
    """Pairs by the ids of their sentences. A pair's id is ``<split>/<first>|<second>``. Order: that of the rows."""
    options = request.options
    assert isinstance(options, ScoredPairsOptions)
    for split, paths in request.files.items():
        if len(paths) != 2:
            raise DataFormatError(f"files.{split} names {len(paths)} files", hint="the pairs, then the sentences")
        table, texts = paths
        sentences = _sentences(request, texts)
        where: dict[str, int] = {}
        for line, row in rows(request, table, options.separator, "minimal"):
            if not where:
                where = {name.strip(): place for place, name in enumerate(row)}
                for name in (options.first, options.second, options.value):
                    if name not in where:
                        raise request.bad(
                            f"the header has no column '{name}'", request.nearest(name, list(where)), table, line
                        )
                continue
            if len(row) != len(where):
                raise request.bad(f"the row has {len(row)} fields, not {len(where)}", "repair the row", table, line)
            ids = [row[where[name]].strip() for name in (options.first, options.second)]
            pair = []
            for sentence_id in ids:
                key = sentence_id if options.id_parts is None else "_".join(sentence_id.split("_")[: options.id_parts])
                if key not in sentences:
                    raise request.bad(
                        "sentence {} is not there", f"{texts.name} has no such key", table, line, sentence_id
                    )
                pair.append(sentences[key])
            yield Document(
                id=f"{split}/{'|'.join(ids)}",
                group="|".join(ids),
                text=pair[1],
                query=pair[0],
                split=split,
                labels=(row[where[options.value]].strip(),),
                origin=at(table, line),
            )


def _sentences(request: Request, path: Path) -> dict[str, str]:
    content = parse_json(request, path, read_text(request, path), "repair the file")
    if not isinstance(content, dict) or not all(isinstance(text, str) for text in content.values()):
        raise request.bad("is not an object of texts by id", "check `files`", path, 1)
    return {str(key): str(text).strip() for key, text in content.items()}
