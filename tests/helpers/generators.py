"""Writes small corpora of our own sentences in the exact native layout of data that is not at hand.

Every function takes the data folder and gives what it wrote, so that tests can compare. The quirks that the
real files are known for are put in on purpose.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

_WORDS = re.findall(
    r"\S+",
    "patient suivi pour une lésion stable sans signe de reprise évolutive après traitement "
    "et contrôle par imagerie avec examen clinique normal et bilan sanguin attendu",
)


def _sentence(rng: random.Random, extra: str = "") -> str:
    words = [rng.choice(_WORDS) for _ in range(rng.randint(6, 14))]
    if extra:
        words.insert(rng.randrange(len(words)), extra)
    return " ".join(words).capitalize() + "."


def _in_blocks(rng: random.Random, lines: list[str]) -> list[str]:
    """The lines of an .ann in an order that is not that of the offsets; each mention stays before its notes, of
    which the last one counts."""
    blocks: list[list[str]] = []
    for line in lines:
        if line.startswith("T"):
            blocks.append([])
        blocks[-1].append(line)
    rng.shuffle(blocks)
    return [line for block in blocks for line in block]


def frasimed(data: Path, part: str = "CANTEMIST", n: int = 160, codes: int = 140) -> dict[str, set[str]]:
    """`FRASIMED/<part>-FRASIMED/*.txt, *.ann` with code notes; one document is empty of annotations."""
    rng = random.Random(3)
    folder = data / "FRASIMED" / f"{part}-FRASIMED"
    folder.mkdir(parents=True)
    note, label = ("ICD-O-3.1", "morphology-onco") if part == "CANTEMIST" else ("SNOMED", "ENFERMEDAD")
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
        (folder / f"{stem}.txt").write_text(text, encoding="utf-8", newline="")
        (folder / f"{stem}.ann").write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="")
        written[stem] = own
    (folder / "._cc_onco1.txt").write_bytes(b"\x00\x05resource fork")
    return written


def distemist(data: Path) -> dict[str, set[str]]:
    """`frasimed` for the other half of the release."""
    return frasimed(data, "DISTEMIST")


def fracco_release(data: Path, n: int = 120, codes: int = 400) -> dict[str, set[str]]:
    """`FRACCO/ann_txt_files/*.txt` and the mention table in no order, with a byte order mark and commas in quotes."""
    rng = random.Random(4)
    folder = data / "FRACCO" / "ann_txt_files"
    folder.mkdir(parents=True)
    written: dict[str, set[str]] = {}
    with (data / "FRACCO" / "DetectOnco_Final.csv").open("w", encoding="utf-8-sig", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["doc_name", "id", "label", "code", "content", "full_span"])
        rows: list[list[str]] = []
        for i in range(1, n + 1):
            stem, own = f"cc_onco{i}", set()
            (folder / f"{stem}.txt").write_text(_sentence(rng) + "\n" + _sentence(rng), encoding="utf-8")
            for k in range(rng.randint(1, 5)):
                number = min(int(rng.expovariate(0.008)), codes - 1)
                code = f"C{number % 80:02}.9 8000/{number % 7}" + (";C77.1 8000/6" if number % 9 == 0 else "")
                rows += [
                    [f"{stem}.ann", f"T{k}", "expression_CIM", f" {code} ", 'adénopathie, dite "sus"', "1 9;12 20"],
                    [f"{stem}.ann", f"T{k}b", "morphologie", "9999/9", "x", "1 2"],
                ]
                own.add(code)
            rows.append([f"{stem}.ann", "T99", "expression_CIM", "", "sans code", "3 5"])
            written[stem] = own
        rng.shuffle(rows)
        table.writerows(rows)
    return written


def meddialog(data: Path, n: int = 90) -> int:
    """The two tab-separated tables with 22 labels; some questions have no answer, one row has no labels."""
    rng = random.Random(5)
    folder = data / "MedDialog-FR" / "MedDialog-FR-women"
    cuis = [f"C00{i:05}" for i in range(100, 122)]
    for part in ("multilabel_annotation", "post-editing"):
        (folder / part).mkdir(parents=True)
    annotated = folder / "multilabel_annotation" / "dataset_multilabel_meddialog_22labels.csv"
    edited = folder / "post-editing" / "meddialog-fr-women_post-editing.csv"
    with annotated.open("w", newline="") as labels, edited.open("w", encoding="utf-8", newline="") as texts:
        first, second = csv.writer(labels, delimiter="\t"), csv.writer(texts, delimiter="\t")
        first.writerow(["id", "split", "labels"])
        second.writerow(["id", "machine_translation", "post-edited"])
        for i in range(n):
            own = [cuis[i % 22]] + ([rng.choice(cuis)] if i % 3 == 0 else [])
            split = "train" if i < n - 20 else "dev" if i < n - 10 else "test"
            first.writerow([f"hm{i}_1_q", split, "[]" if i == 0 else repr(own)])
            second.writerow([f"hm{i}_1_q", "brut", f"J'ai une question {i} : {_sentence(rng)}"])
            if i % 4:
                second.writerow([f"hm{i}_1_a", "brut", _sentence(rng)])
    return n - 1


DIAMED = ("A00-B99  Certain infectious and parasitic diseases", "C00-D49  Neoplasms", "I00-I99  Diseases of the heart")


def diamed(data: Path) -> dict[str, int]:
    """`DiaMED/splits/*.json` with NaN labels, cases to drop, blank texts and two blanks after each range."""
    rng = random.Random(6)
    folder = data / "DiaMED" / "splits"
    folder.mkdir(parents=True)
    sizes = {"train": 20, "validation": 6, "test": 7}
    for split, size in sizes.items():
        rows: list[tuple[str, str | float]] = [(f" {_sentence(rng)} ", DIAMED[i % 3]) for i in range(size)]
        rows[1:1] = [("Deux cas.", "Plusieurs cas cliniques"), ("Rien.", "Aucune annotation")]
        rows[3:3] = [("Vide.", float("nan")), ("  ", DIAMED[0])]
        names = ("identifier", "clinical_case", "icd-10", "figures")
        items = [dict(zip(names, (f"{split}{i}", *row, []), strict=True)) for i, row in enumerate(rows)]
        (folder / f"{split}.json").write_text(json.dumps(items, ensure_ascii=False, indent=1), encoding="utf-8")
    return sizes


PHENOTYPES = [
    "ADVANCED.CANCER", "ADVANCED.HEART.DISEASE", "ADVANCED.LUNG.DISEASE", "ALCOHOL.ABUSE",
    "CHRONIC.NEUROLOGICAL.DYSTROPHIES", "CHRONIC.PAIN.FIBROMYALGIA", "DEMENTIA", "DEPRESSION",
    "DEVELOPMENTAL.DELAY.RETARDATION", "NON.ADHERENCE", "OBESITY", "OTHER.SUBSTANCE.ABUSE",
    "SCHIZOPHRENIA.AND.OTHER.PSYCHIATRIC.DISORDERS", "UNSURE",
]  # fmt: skip


def phenotype(data: Path, notes: int = 40) -> int:
    """The annotation table (two rows per note, one contradictory) and a notes table with texts over lines."""
    rng = random.Random(7)
    folder = data / "phenotype"
    folder.mkdir(parents=True)
    with (folder / "ACTdb102003.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["HADM_ID", "SUBJECT_ID", "ROW_ID", *PHENOTYPES, "NONE", "BATCH.ID", "OPERATOR"])
        for i in range(notes):
            for operator in ("AA", "BB"):
                flags = [int(rng.random() < 0.15) for _ in PHENOTYPES]
                table.writerow([f"1{i}", f"5{i // 2}", 1000 + i, *flags, int(not any(flags)), 1, operator])
        table.writerow(["1", "50", 1000, 1, *[0] * 13, 1, 1, "CC"])
        table.writerow(["1", "59", 999_999, 1, *[0] * 13, 0, 1, "CC"])
    with (folder / "NOTEEVENTS.csv").open("w", newline="") as stream:
        table = csv.writer(stream, quoting=csv.QUOTE_ALL)
        table.writerow(["ROW_ID", "SUBJECT_ID", "CATEGORY", "TEXT"])
        for i in reversed(range(notes)):
            table.writerow([1000 + i, f"5{i // 2}", "Discharge", f'Note {i}:\n\n"{_sentence(rng)}", said\n'])
        table.writerow([7, "1", "Other", "not asked for"])
    return 2 * notes


COS = (("opacity", "Attr"), ("left lobe", "Loc"), ("large", "Val"), ("larger", "Cos"), ("is", "Dhead"))


def cos(data: Path, snippets: int = 1008, duplicates: int = 57) -> list[str]:
    """`cos/snippet<a>_<b>.txt/.ann`: one snippet a line, whole-file offsets, R and # lines, Duplicate lines.

    As in the release, neither the snippets of an .ann nor the mentions of a snippet stand in the order of their
    offsets, and a mention may stand before its snippet. Gives the snippets in the order of their lines in the files.
    """
    folder = data / "cos"
    folder.mkdir(parents=True)
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
        lines = [line for _, block in blocks for line in block]
        (folder / f"snippet{a}_{b}.txt").write_text(text, encoding="ascii", newline="")
        (folder / f"snippet{a}_{b}.ann").write_text("\n".join(lines) + "\n", encoding="ascii", newline="")
    return [line for name in sorted(order) for line in order[name]]


def deid(data: Path, records: int = 2434) -> int:
    """`deid/id.text` and `id.res`: plain notes, typed masks, a date mask, two adjacent masks, a mask at the end."""
    folder = data / "deid"
    folder.mkdir(parents=True)
    kinds: list[tuple[str, str]] = [
        ("Seen by Dr. Smith, stable.\nPlan: rest", "Seen by Dr. [**Last Name (un) 101**], stable.\nPlan: rest"),
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


def jnlpba(data: Path) -> None:
    """`mtl_jnlpba/*.tsv` with `-DOCSTART-<tab>O` lines between abstracts and five types."""
    folder = data / "mtl_jnlpba"
    folder.mkdir(parents=True)
    types = ["protein", "DNA", "RNA", "cell_type", "cell_line"]
    for name, size in (("train", 40), ("devel", 10), ("test", 10)):
        lines: list[str] = []
        for i in range(size):
            if i % 4 == 0:
                lines += ["-DOCSTART-\tO", ""]
            kind = types[i % 5]
            lines += ["The\tO", f"IL-{i}\tB-{kind}", f"unit\tI-{kind}", "was\tO", "seen\tO", ".\tO", ""]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _jnlpba_sentence(name: str, kind: str) -> str:
    return f"The\tO\n{name}\tB-{kind}\nunit\tI-{kind}\nwas\tO\nseen\tO\n.\tO\n\n"


def jnlpba_release(data: Path, abstracts: int = 230) -> None:
    """`jnlpba/Genia4ERtask2.iob2` and `Genia4EReval2.iob2`: `###MEDLINE:<id>` and a blank line before each abstract.

    Two sentences an abstract, ids in no order. Of the five test abstracts one stands twice, with another text the
    second time, and one is the third of train too.
    """
    folder = data / "jnlpba"
    folder.mkdir(parents=True)
    ids = [f"9{(7 * i) % abstracts:07}" for i in range(abstracts)]
    types = ["protein", "DNA", "RNA", "cell_type", "cell_line"]
    for name, own in (
        ("Genia4ERtask2", ids),
        ("Genia4EReval2", ["21000001", "21000002", "21000001", ids[2], "21000003"]),
    ):
        parts = []
        for i, abstract in enumerate(own):
            sentences = [_jnlpba_sentence(f"IL-{i}.{k}", types[(i + k) % 5]) for k in range(2)]
            parts.append(f"###MEDLINE:{abstract}\n\n{''.join(sentences)}")
        (folder / f"{name}.iob2").write_text("".join(parts), encoding="ascii")


def jnlpba_standoff(data: Path) -> None:
    """`jnlpba_standoff/{train,devel,test}`: title and abstract a line each; train also holds what devel holds.

    Mentions stand in the .ann from the last to the first. Abstract 5 (devel), 2 (train) and 7 (test) each have a
    mention that begins inside a word and ends in it; abstract 1 is in train and in test.
    """
    held = {"train": range(1, 7), "devel": (5, 6), "test": (7, 8, 1)}
    for split, numbers in held.items():
        folder = data / "jnlpba_standoff" / split
        folder.mkdir(parents=True)
        for i in numbers:
            text = f"Binding of IL-{i} in T cells.\nWe saw that proIL-{i}beta was bound by kinase {i} .\n"
            found = [("protein", f"IL-{i} "), ("cell_type", "T cells"), ("DNA", f"kinase {i}")]
            if i in (2, 5, 7):
                found.append(("protein", "beta"))
            lines = []
            for number, (kind, surface) in enumerate(found, start=1):
                at = text.index(surface)
                surface = surface.strip()
                lines.append(f"T{number}\t{kind} {at} {at + len(surface)}\t{surface}\n")
            (folder / f"{9000 + i}.txt").write_text(text, encoding="ascii")
            (folder / f"{9000 + i}.ann").write_text("".join(reversed(lines)), encoding="ascii")


def chemprot(data: Path) -> int:
    """`chemprot/{train,dev,test}.tsv` with header, PMID.chemical.gene indices and literal quotes."""
    rng = random.Random(9)
    folder = data / "chemprot"
    folder.mkdir(parents=True)
    labels = ["false", "CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9"]
    for name, size in (("train", 60), ("dev", 12), ("test", 12)):
        with (folder / f"{name}.tsv").open("w", newline="", encoding="utf-8") as stream:
            table = csv.writer(stream, delimiter="\t", lineterminator="\n")
            table.writerow(["index", "sentence", "label"])
            for i in range(size):
                text = f'@CHEMICAL$ "acts" on @GENE$ in case {i}: {_sentence(rng)}'
                table.writerow([f"{1000 + i // 3}.T1.T{i}", text, labels[i % 6]])
    return 84


GENERATORS: dict[str, Callable[[Path], object]] = {
    "cantemist": frasimed,
    "distemist": distemist,
    "fracco_30": fracco_release,
    "fracco_100": fracco_release,
    "meddialog_fr": meddialog,
    "diamed": diamed,
    "phenotype": phenotype,
    "phenotype_grouped": phenotype,
    "cos": cos,
    "deid": deid,
    "deid_joined": deid,
    "jnlpba": jnlpba,
    "chemprot": chemprot,
}
"""Task id to the function that writes its data."""
