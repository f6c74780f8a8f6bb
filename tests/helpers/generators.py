"""Writes small corpora of our own sentences in the exact native layout of data that is not
available.

Every function takes the data folder and gives what it wrote, so that tests can compare. The quirks
that the real files are known for are put in on purpose.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_WORDS = re.findall(
    r"\S+",
    "patient suivi pour une lésion stable sans signe de reprise évolutive après traitement "
    "et contrôle par imagerie avec examen clinique normal et bilan sanguin attendu",
)


def _sentence(rng: random.Random) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(rng.randint(6, 14))).capitalize() + "."


def _new(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _table(
    path: Path, rows: Iterable[Iterable[object]], encoding: str = "utf-8", **options: Any
) -> None:
    with path.open("w", encoding=encoding, newline="") as stream:
        csv.writer(stream, **options).writerows(rows)


def _standoff(folder: Path, stem: str, text: str, lines: Iterable[str]) -> None:
    (folder / f"{stem}.txt").write_bytes(text.encode())
    (folder / f"{stem}.ann").write_bytes("".join(f"{line}\n" for line in lines).encode())


def _in_blocks(rng: random.Random, lines: list[str]) -> list[str]:
    """The lines of an .ann in an order that is not that of the offsets; each mention stays before
    its notes, of which the last one counts.
    """
    blocks: list[list[str]] = []
    for line in lines:
        if line.startswith("T"):
            blocks.append([])
        blocks[-1].append(line)
    rng.shuffle(blocks)
    return [line for block in blocks for line in block]


def frasimed(
    data: Path, part: str = "CANTEMIST", n: int = 160, codes: int = 140
) -> dict[str, set[str]]:
    """`FRASIMED/<part>-FRASIMED/*.txt, *.ann` with code notes; one document is empty of
    annotations.
    """
    rng = random.Random(3)
    folder = _new(data / "FRASIMED" / f"{part}-FRASIMED")
    note, label = (
        ("ICD-O-3.1", "morphology-onco") if part == "CANTEMIST" else ("SNOMED", "ENFERMEDAD")
    )
    pool = [f"8{i:03}/{rng.choice('0136')}" for i in range(codes)]
    if part == "CANTEMIST":
        pool[1], pool[2] = "8000/1/H", "8140/33"
    else:
        pool = [str(10_000_000 + 7 * i) for i in range(codes)]
        pool[3] = "11111+22222"
    written: dict[str, set[str]] = {}
    for i in range(1, n + 1):
        stem = f"cc_onco{i}" if part == "CANTEMIST" else f"es-S0210-{i:04}-1"
        lines, text, own = [], "", set()
        for k in range(rng.randint(2, 6)):
            code = pool[min(int(rng.expovariate(0.03)), codes - 1)]
            surface = f"tumeur numéro {k}"
            text += _sentence(rng)[:-1] + " "
            start = len(text)
            text += surface + ".\n"
            lines.append(f"T{k + 1}\t{label} {start} {start + len(surface)}\t{surface}")
            if k == 1:
                lines.append(f"#{90 + k}\tAnnotatorNotes T{k + 1}\ttrad")
                lines.append(f"#{80 + k}\t{note} T{k + 1}\tremplacé")
            lines.append(f"#{k + 1}\t{note} T{k + 1}\t{code}")
            own.add(code)
        lines = _in_blocks(rng, lines)
        if i == n:
            lines, own = [], set()
        _standoff(folder, stem, text, lines)
        written[stem] = own
    (folder / "._cc_onco1.txt").write_bytes(b"\x00\x05resource fork")
    return written


def distemist(data: Path) -> dict[str, set[str]]:
    """`frasimed` for the other half of the release."""
    return frasimed(data, "DISTEMIST")


def fracco_release(data: Path, n: int = 120, codes: int = 400) -> dict[str, set[str]]:
    """`FRACCO/ann_txt_files/*.txt` and the mention table in no order, with a byte order mark and
    commas in quotes.
    """
    rng = random.Random(4)
    folder = _new(data / "FRACCO" / "ann_txt_files")
    written: dict[str, set[str]] = {}
    rows: list[list[str]] = []
    for i in range(1, n + 1):
        stem, own = f"cc_onco{i}", set()
        (folder / f"{stem}.txt").write_text(
            _sentence(rng) + "\n" + _sentence(rng), encoding="utf-8"
        )
        for k in range(rng.randint(1, 5)):
            number = min(int(rng.expovariate(0.008)), codes - 1)
            code = f"C{number % 80:02}.9 8000/{number % 7}" + (
                ";C77.1 8000/6" if number % 9 == 0 else ""
            )
            rows += [
                [
                    f"{stem}.ann",
                    f"T{k}",
                    "expression_CIM",
                    f" {code} ",
                    'adénopathie, dite "sus"',
                    "1 9;12 20",
                ],
                [f"{stem}.ann", f"T{k}b", "morphologie", "9999/9", "x", "1 2"],
            ]
            own.add(code)
        rows.append([f"{stem}.ann", "T99", "expression_CIM", "", "sans code", "3 5"])
        written[stem] = own
    rng.shuffle(rows)
    head = ["doc_name", "id", "label", "code", "content", "full_span"]
    _table(data / "FRACCO" / "DetectOnco_Final.csv", [head, *rows], "utf-8-sig")
    return written


def meddialog(data: Path, n: int = 90) -> int:
    """The two tab-separated tables with 22 labels; some questions have no answer, one row has no
    labels.
    """
    rng = random.Random(5)
    folder = data / "MedDialog-FR" / "MedDialog-FR-women"
    cuis = [f"C00{i:05}" for i in range(100, 122)]
    annotated, edited = [["id", "split", "labels"]], [["id", "machine_translation", "post-edited"]]
    for i in range(n):
        own = [cuis[i % 22]] + ([rng.choice(cuis)] if i % 3 == 0 else [])
        split = "train" if i < n - 20 else "dev" if i < n - 10 else "test"
        annotated.append([f"hm{i}_1_q", split, "[]" if i == 0 else repr(own)])
        edited.append([f"hm{i}_1_q", "brut", f"J'ai une question {i} : {_sentence(rng)}"])
        if i % 4:
            edited.append([f"hm{i}_1_a", "brut", _sentence(rng)])
    labels = _new(folder / "multilabel_annotation") / "dataset_multilabel_meddialog_22labels.csv"
    _table(labels, annotated, delimiter="\t")
    _table(
        _new(folder / "post-editing") / "meddialog-fr-women_post-editing.csv",
        edited,
        delimiter="\t",
    )
    return n - 1


DIAMED = (
    "A00-B99  Certain infectious and parasitic diseases",
    "C00-D49  Neoplasms",
    "I00-I99  Diseases of the heart",
)


def diamed(data: Path) -> dict[str, int]:
    """`DiaMED/splits/*.json` with NaN labels, cases to drop, blank texts and two blanks after each
    range.
    """
    rng = random.Random(6)
    folder = _new(data / "DiaMED" / "splits")
    sizes = {"train": 20, "validation": 6, "test": 7}
    for split, size in sizes.items():
        rows: list[tuple[str, str | float]] = [
            (f" {_sentence(rng)} ", DIAMED[i % 3]) for i in range(size)
        ]
        rows[1:1] = [("Deux cas.", "Plusieurs cas cliniques"), ("Rien.", "Aucune annotation")]
        rows[3:3] = [("Vide.", float("nan")), ("  ", DIAMED[0])]
        names = ("identifier", "clinical_case", "icd-10", "figures")
        items = [
            dict(zip(names, (f"{split}{i}", *row, []), strict=True)) for i, row in enumerate(rows)
        ]
        (folder / f"{split}.json").write_text(
            json.dumps(items, ensure_ascii=False, indent=1), encoding="utf-8"
        )
    return sizes


PHENOTYPES = [
    "ADVANCED.CANCER",
    "ADVANCED.HEART.DISEASE",
    "ADVANCED.LUNG.DISEASE",
    "ALCOHOL.ABUSE",
    "CHRONIC.NEUROLOGICAL.DYSTROPHIES",
    "CHRONIC.PAIN.FIBROMYALGIA",
    "DEMENTIA",
    "DEPRESSION",
    "DEVELOPMENTAL.DELAY.RETARDATION",
    "NON.ADHERENCE",
    "OBESITY",
    "OTHER.SUBSTANCE.ABUSE",
    "SCHIZOPHRENIA.AND.OTHER.PSYCHIATRIC.DISORDERS",
    "UNSURE",
]


def phenotype(data: Path, notes: int = 40) -> int:
    """The annotation table (two rows per note, one contradictory) and a notes table with texts over
    lines.
    """
    rng = random.Random(7)
    folder = _new(data / "phenotype")
    flagged: list[list[object]] = [
        ["HADM_ID", "SUBJECT_ID", "ROW_ID", *PHENOTYPES, "NONE", "BATCH.ID", "OPERATOR"]
    ]
    for i in range(notes):
        for operator in ("AA", "BB"):
            flags = [int(rng.random() < 0.15) for _ in PHENOTYPES]
            flagged.append(
                [f"1{i}", f"5{i // 2}", 1000 + i, *flags, int(not any(flags)), 1, operator]
            )
    flagged += [
        ["1", "50", 1000, 1, *[0] * 13, 1, 1, "CC"],
        ["1", "59", 999_999, 1, *[0] * 13, 0, 1, "CC"],
    ]
    _table(folder / "ACTdb102003.csv", flagged)
    texts: list[list[object]] = [["ROW_ID", "SUBJECT_ID", "CATEGORY", "TEXT"]]
    for i in reversed(range(notes)):
        texts.append(
            [1000 + i, f"5{i // 2}", "Discharge", f'Note {i}:\n\n"{_sentence(rng)}", said\n']
        )
    _table(
        folder / "NOTEEVENTS.csv",
        [*texts, [7, "1", "Other", "not asked for"]],
        quoting=csv.QUOTE_ALL,
    )
    return 2 * notes


COS = (
    ("opacity", "Attr"),
    ("left lobe", "Loc"),
    ("large", "Val"),
    ("larger", "Cos"),
    ("is", "Dhead"),
)


def cos(data: Path, snippets: int = 1008, duplicates: int = 57) -> list[str]:
    """`cos/snippet<a>_<b>.txt/.ann`: one snippet a line, whole-file offsets, R and # lines,
    Duplicate lines.

    As in the release, neither the snippets of an .ann nor the mentions of a snippet stand in the
    order of their offsets, and a mention may stand before its snippet. Gives the snippets in the
    order of their lines in the files.
    """
    folder = _new(data / "cos")
    kinds = ["Snippet"] * snippets + ["Duplicate"] * duplicates
    rng = random.Random(8)
    rng.shuffle(kinds)
    names = [(a, min(a + 99, len(kinds))) for a in range(1, len(kinds) + 1, 100)]
    order: dict[str, list[str]] = {}
    for a, b in names:
        text, number = "", 0
        blocks: list[tuple[str, list[str]]] = []
        for i in range(a, b + 1):
            start = len(text)
            line = f"line {i}: opacity in the left lobe, is now larger-sized ."
            text += line + "\n"
            number += 1
            lines = [f"T{number}\t{kinds[i - 1]} {start} {start + len(line)}\t{line}"]
            if kinds[i - 1] == "Snippet":
                for surface, kind in COS:
                    number += 1
                    at = start + line.index(surface)
                    if surface == "large" and i % 50:
                        continue
                    lines.append(f"T{number}\t{kind} {at} {at + len(surface)}\t{surface}")
                rng.shuffle(lines)
                lines.append(f"R{number}\thas Arg1:T1 Arg2:T2\t")
                lines.append(f"#{number}\tAnnotatorNotes T1\treport {i}")
            blocks.append((line if kinds[i - 1] == "Snippet" else "", lines))
        rng.shuffle(blocks)
        order[f"snippet{a}_{b}"] = [snippet for snippet, _ in blocks if snippet]
        _standoff(folder, f"snippet{a}_{b}", text, (line for _, block in blocks for line in block))
    return [line for name in sorted(order) for line in order[name]]


def deid(data: Path, records: int = 2434) -> int:
    """`deid/id.text` and `id.res`: plain notes, typed masks, a date mask, two adjacent masks, a
    mask at the end.
    """
    folder = _new(data / "deid")
    kinds: list[tuple[str, str]] = [
        (
            "Seen by Dr. Smith, stable.\nPlan: rest",
            "Seen by Dr. [**Last Name (un) 101**], stable.\nPlan: rest",
        ),
        ("quiet night, no events", "quiet night, no events"),
        ("moved to Ward 7 on 12-3 with wife", "moved to [**Hospital 5**] on [**12-3**] with wife"),
        ("call John Smith then rest", "call [**Name1 (LF) 12**] [**Last Name (un) 3**] then rest"),
        ("pager 4411", "pager [**Pager number 9**]"),
        ("aged 92 , pt", "aged [**Age over 90 1**] , pt"),
    ]
    with (folder / "id.text").open("w") as texts, (folder / "id.res").open("w") as masked:
        for i in range(records):
            head = f"\nSTART_OF_RECORD={i // 15 + 1}||||{i + 1}||||\n"
            for stream, body in zip((texts, masked), kinds[i % len(kinds)], strict=True):
                stream.write(f"{head}{body}\n||||END_OF_RECORD\n")
    return records


_TYPES = ("protein", "DNA", "RNA", "cell_type", "cell_line")


def _jnlpba_sentence(name: str, number: int) -> str:
    kind = _TYPES[number % 5]
    return f"The\tO\n{name}\tB-{kind}\nunit\tI-{kind}\nwas\tO\nseen\tO\n.\tO\n\n"


def jnlpba(data: Path) -> None:
    """`mtl_jnlpba/*.tsv` with `-DOCSTART-<tab>O` lines between abstracts and five types."""
    folder = _new(data / "mtl_jnlpba")
    for name, size in (("train", 40), ("devel", 10), ("test", 10)):
        parts = [
            ("" if i % 4 else "-DOCSTART-\tO\n\n") + _jnlpba_sentence(f"IL-{i}", i)
            for i in range(size)
        ]
        (folder / f"{name}.tsv").write_text("".join(parts), encoding="utf-8")


def jnlpba_release(data: Path) -> None:
    """`jnlpba/Genia4ERtask2.iob2` and `Genia4EReval2.iob2`: `###MEDLINE:<id>` and a blank line
    before each abstract.

    Two sentences an abstract, 230 ids in no order. Of the five test abstracts one occurs twice,
    with another text the second time, and one is the third of train too.
    """
    folder = _new(data / "jnlpba")
    ids = [f"9{(7 * i) % 230:07}" for i in range(230)]
    test = ["21000001", "21000002", "21000001", ids[2], "21000003"]
    for name, own in (("Genia4ERtask2", ids), ("Genia4EReval2", test)):
        parts = []
        for i, abstract in enumerate(own):
            sentences = [_jnlpba_sentence(f"IL-{i}.{k}", i + k) for k in range(2)]
            parts.append(f"###MEDLINE:{abstract}\n\n{''.join(sentences)}")
        (folder / f"{name}.iob2").write_text("".join(parts), encoding="ascii")


def jnlpba_standoff(data: Path) -> None:
    """`jnlpba_standoff/{train,devel,test}`: title and abstract a line each; train also holds what
    devel holds.

    Mentions stand in the .ann from the last to the first. Abstract 5 (devel), 2 (train) and 7
    (test) each have a mention that begins inside a word and ends in it; abstract 1 is in train and
    in test.
    """
    held = {"train": range(1, 7), "devel": (5, 6), "test": (7, 8, 1)}
    for split, numbers in held.items():
        folder = _new(data / "jnlpba_standoff" / split)
        for i in numbers:
            text = (
                f"Binding of IL-{i} in T cells.\nWe saw that proIL-{i}beta was bound by kinase "
                f"{i} .\n"
            )
            found = [("protein", f"IL-{i} "), ("cell_type", "T cells"), ("DNA", f"kinase {i}")]
            if i in (2, 5, 7):
                found.append(("protein", "beta"))
            lines = []
            for number, (kind, surface) in enumerate(found, start=1):
                at = text.index(surface)
                surface = surface.strip()
                lines.append(f"T{number}\t{kind} {at} {at + len(surface)}\t{surface}")
            _standoff(folder, f"{9000 + i}", text, reversed(lines))


def chemprot(data: Path) -> int:
    """`chemprot/{train,dev,test}.tsv` with header, PMID.chemical.gene indices and literal
    quotes."""
    rng = random.Random(9)
    folder = _new(data / "chemprot")
    labels = ["false", "CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9"]
    for name, size in (("train", 60), ("dev", 12), ("test", 12)):
        rows = [["index", "sentence", "label"]]
        for i in range(size):
            text = f'@CHEMICAL$ "acts" on @GENE$ in case {i}: {_sentence(rng)}'
            rows.append([f"{1000 + i // 3}.T1.T{i}", text, labels[i % 6]])
        _table(folder / f"{name}.tsv", rows, delimiter="\t", lineterminator="\n")
    return 84


GENERATORS: dict[str, Callable[[Path], object]] = {
    "cantemist": frasimed,
    "distemist": distemist,
    "diamed": diamed,
}
GENERATORS |= {"meddialog_fr": meddialog, "cos": cos, "jnlpba": jnlpba, "chemprot": chemprot}
GENERATORS |= {
    "deid": deid,
    "deid_joined": deid,
    "phenotype": phenotype,
    "phenotype_grouped": phenotype,
}
GENERATORS |= {"fracco_30": fracco_release, "fracco_100": fracco_release}
"""Task id to the function that writes its data."""
