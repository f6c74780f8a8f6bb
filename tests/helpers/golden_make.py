"""Small runs of every kind of task on two families of encoders, and a pair of the trainer, whose results are fixed.

The checkpoints are written without any library's random numbers or file formats, so their hashes, and with them the
keys of the runs, are the same everywhere. What the runs gave stands in `tests/golden/golden_runs.json`;

    python -m tests.helpers.golden_make

writes it anew (one thread, some 40 s). Its difference is to be explained in the change that makes it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import transformers as hf
from safetensors.numpy import save_file

import biobench
from biobench.data.catalog import load_task
from biobench.data.hashing import canonical
from biobench.data.load import load_data
from biobench.schema.document import Document
from biobench.store import Store
from tests.helpers.checkpoints import FAMILIES, SPECIAL
from tests.helpers.span_make import make_nested

FILE = Path(__file__).parent.parent / "golden" / "golden_runs.json"

_WORDPIECE = {
    "normalizer": {
        **dict.fromkeys(("clean_text", "handle_chinese_chars", "lowercase"), True),
        "type": "BertNormalizer",
        "strip_accents": None,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {
        "type": "WordPiece",
        "unk_token": "<unk>",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
    },
}
_UNIGRAM = {
    "normalizer": {"type": "NFKC"},
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    "model": {"type": "Unigram", "unk_id": 3, "byte_fallback": False},
}

_SPEC = """\
id: {id}
version: 1
name: Made for golden runs
language: {language}
type: {type}
source: {source}
reader: {reader}
labels: {labels}
unit: sentence
protocol: {{max_length: 64}}
training: {{epochs: 8, learning_rate: 4e-3, batch_size: 8, precision: fp32{frozen}}}
head: {head}
metric: {metric}
access: open
licence: CC0
homepage: https://example.org
citation: made for a test
"""
_ROWS = "{id: made, folder: rows, files: {train: train.tsv, validation: validation.tsv, test: test.tsv}}"
_TOPICS = "[cardiology, gastroenterology, neurology, pneumology]"
_PROBE = ("training.encoder=frozen", "probe={learning_rates: [3e-3, 3e-2], epochs: 16, segments: 4, batch_size: 8}")

RUNS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "tags bert": ("bert", "demo_ner", ("training.epochs=16",)),
    "tags modernbert windows": (
        "modernbert",
        "demo_ner",
        ("protocol={long_documents: stride, max_length: 16, stride: 4}",),
    ),
    "tags bert frozen": ("bert", "demo_ner", _PROBE),
    "spans bert": ("bert", "nested", ("head.span={width: 32, layers: 1, biaffine_width: 8}",)),
    "spans modernbert biaffine windows": (
        "modernbert",
        "nested",
        (
            "head={kind: span, pooling: mean, span: {variant: biaffine, biaffine_width: 8, max_span: 3}}",
            "protocol={long_documents: stride, max_length: 16, stride: 4}",
        ),
    ),
    "one label bert": ("bert", "demo_topic", ()),
    "one label modernbert windows": (
        "modernbert",
        "demo_topic",
        ("protocol={long_documents: stride, max_length: 16, stride: 4, merge: mean}", "head.pooling=mean"),
    ),
    "one label modernbert frozen": ("modernbert", "demo_topic", _PROBE),
    "several labels bert": ("bert", "golden_several", ("head={kind: sequence, threshold: tuned}",)),
    "several labels modernbert": (
        "modernbert",
        "golden_several",
        (
            *("training.positive_weights=ratio", "head={kind: sequence, fallback: top1, threshold: 0.6}"),
            *("metric.primary=example_f1", "training.evaluate_every=7", "training.patience=1"),
        ),
    ),
    "several labels bert frozen": (
        "bert",
        "golden_several",
        (*_PROBE, "probe.kind=linear", "training.positive_weights=ratio", "head={kind: sequence, threshold: tuned}"),
    ),
    "relation bert": ("bert", "golden_relation", ()),
    "relation modernbert": ("modernbert", "golden_relation", ("training.batching=bucketed",)),
    "pair of texts bert": ("bert", "golden_pair", ()),
    "pair of texts modernbert": ("modernbert", "golden_pair", ("protocol.max_length=24",)),
    "labelled pair bert": ("bert", "golden_text_pair", ("protocol={max_length: 24, pairs: shorten_text}",)),
    "numbers bert": ("bert", "golden_numbers", ("training.epochs=16",)),
    "options modernbert": ("modernbert", "golden_options", ()),
    "names bert": ("bert", "golden_names", ()),
    "needle bert frozen": ("bert", "golden_needle", (*_PROBE, "protocol.max_length=192")),
    "needle modernbert": ("modernbert", "golden_needle", ("protocol.max_length=224",)),
}
"""Name of a run to its family of encoders, its task and its overrides."""

PRETRAINED = {
    "detour": ("toy_detour", ("phases.0.tokens=4608", "phases.0.schedule.warmup=1000", "phases.1.tokens=3072")),
    "twin": ("toy_mlm_twin", ("phases.0.tokens=4608", "phases.0.schedule.warmup=1000", "phases.1.tokens=3072")),
}
"""The pretraining pair: name to recipe and overrides."""
_SMALL = (
    *("base.config.hidden_size=32", "base.config.intermediate_size=32", "base.config.num_hidden_layers=3"),
    *("base.config.num_attention_heads=2", "base.config.local_attention=16", "base.tokenizer.vocabulary=500"),
    *("corpus.sources.0.embedded.documents=150", "corpus.sequence_length=48", "batch.sequences=8", "logging.every=1"),
)


def _topics() -> dict[str, list[Document]]:
    return load_data(load_task("demo_topic"), None).documents


def write_checkpoint(family: str, folder: Path) -> Path:
    """Write a checkpoint of `family` that is the same, byte for byte, on every machine."""
    folder.mkdir(parents=True)
    words = sorted({w for d in _topics()["train"] for w in d.text.split()})
    letters = sorted({c for w in words for c in w.lower() + w} | set("abcdefghijklmnopqrstuvwxyz0123456789.,;:/()'-%"))
    if family == "bert":
        entries = [*SPECIAL, *letters, *(f"##{c}" for c in letters)]
        entries += sorted({w.lower() for w in words} - set(entries))
        form: dict[str, Any] = json.loads(json.dumps(_WORDPIECE))
        form["model"]["vocab"] = {entry: i for i, entry in enumerate(entries)}
    else:
        entries = [*SPECIAL, "▁", *letters, *(f"▁{w}" for w in words)]
        form = json.loads(json.dumps(_UNIGRAM))
        form["model"]["vocab"] = [[e, -1.0 if e.startswith("▁") else -4.0] for e in entries]
    form["version"], form["truncation"], form["padding"], form["decoder"] = "1.0", None, None, None
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    form["added_tokens"] = [{"id": i, "content": c, **flags, "special": True} for i, c in enumerate(SPECIAL)]

    def special(name: str, kind: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": kind}}

    def text(name: str, kind: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": kind}}

    single = [special("<s>", 0), text("A", 0), special("</s>", 0)]
    form["post_processor"] = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, text("B", 1), special("</s>", 1)],
        "special_tokens": {c: {"id": c, "ids": [SPECIAL.index(c)], "tokens": [c]} for c in ("<s>", "</s>")},
    }
    _write_json(folder / "tokenizer.json", form)
    names = dict(zip(("bos", "pad", "eos", "unk", "mask"), SPECIAL, strict=True)) | {"cls": "<s>", "sep": "</s>"}
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": 512,
            **{f"{role}_token": name for role, name in names.items()},
        },
    )
    config_class, _, sizes = FAMILIES[family]
    ids = {"bos_token_id": 0, "cls_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "sep_token_id": 2}
    fields = {
        **sizes,
        **(ids if family == "modernbert" else {"pad_token_id": 1}),
        "vocab_size": len(entries),
        "max_position_embeddings": 300,
    }
    model = hf.AutoModel.from_config(config_class(**fields))
    draw = np.random.RandomState(7)  # whose numbers never change from one version to the next
    weights = {}
    for name, old in sorted(model.state_dict().items()):
        if name.endswith("bias"):
            weights[name] = np.zeros(old.shape, np.float32)
        elif old.ndim == 1:
            weights[name] = np.ones(old.shape, np.float32)
        else:
            weights[name] = ((draw.random_sample(tuple(old.shape)) - 0.5) * 0.25).astype(np.float32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    _write_json(
        folder / "config.json",
        {"model_type": model.config.model_type, "architectures": [type(model).__name__], **fields},
    )
    return folder


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, sort_keys=True), encoding="utf-8")


def write_tasks(folder: Path) -> dict[str, str]:
    """Write corpora and specs below `folder`; task id to what names the task."""
    (folder / "rows").mkdir(parents=True)
    topics = _topics()
    draw = random.Random(5)
    related = {"cardiology": "treats", "neurology": "causes"}
    for split, size in (("train", 48), ("validation", 24), ("test", 24)):
        lines, questions = ["asked\ttext\ttopic\tseveral\trelation\tsame\tsize"], []
        for number, d in enumerate(topics[split][:size]):
            (topic,) = d.labels
            asked = topic if draw.random() < 0.5 else draw.choice([t for t in related if t != topic])
            several = "|".join([topic, *(["long"] if len(d.text) > 60 else [])]) if number % 8 else ""
            row = (asked, d.text, topic, several, related.get(topic, "none"), "yes" if asked == topic else "no")
            lines.append("\t".join((*row, str(len(d.text)))))
            question = {"asked": d.text, "a": topic, "b": asked, "right": ["a", "b"] if asked == topic else ["a"]}
            questions.append(json.dumps(question))
        (folder / "rows" / f"{split}.jsonl").write_text("\n".join(questions) + "\n", encoding="utf-8")
        (folder / "rows" / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def spec(id: str, **fields: str) -> str:
        path = folder / f"{id}.yaml"
        plain = {
            "frozen": "",
            "language": "en",
            "source": _ROWS,
            "head": "{kind: sequence}",
            "metric": "{paper: micro_f1}",
        }
        path.write_text(_SPEC.format(id=id, **{**plain, **fields}), encoding="utf-8")
        return str(path)

    needle = "{format: needle, lengths: [192, 224], notes: 300, examples: {train: 48, validation: 12, test: 24}}"
    return {
        "golden_several": spec(
            "golden_several",
            type="multi_label",
            labels=_TOPICS[:-1] + ", long]",
            reader="{format: tsv, columns: {text: text, label: several}, label_separator: '|'}",
        ),
        "golden_relation": spec(
            "golden_relation",
            type="relation",
            labels="[none, treats, causes]",
            reader="{format: tsv, columns: {text: text, label: relation}}",
            metric="{primary: micro_f1_positive, paper: micro_f1_positive, negative_label: none}",
        ),
        "golden_pair": spec(
            "golden_pair",
            type="single_label",
            labels="['no', 'yes']",
            reader="{format: tsv, columns: {text: text, label: same, first: asked}}",
            metric="{primary: accuracy, paper: accuracy}",
        ),
        "golden_text_pair": spec(
            "golden_text_pair",
            type="text_pair",
            labels="['no', 'yes']",
            reader="{format: tsv, columns: {text: text, label: same, first: asked}}",
            metric="{primary: accuracy, paper: accuracy}",
        ),
        "golden_numbers": spec(
            "golden_numbers",
            type="regression",
            labels="[length]\nscale: [0, 400]",
            reader="{format: tsv, columns: {text: text, label: size, first: asked}}",
            metric="{primary: pearson, paper: spearman}",
        ),
        "golden_options": spec(
            "golden_options",
            type="multiple_choice",
            labels="[a, b]",
            source=_ROWS.replace(".tsv", ".jsonl"),
            reader="{format: choices, layout: lines, question: asked, options: [a, b], right: right}",
            metric="{primary: exact_match, paper: hamming}",
        ),
        "golden_names": _names(folder, spec),
        "golden_needle": spec(
            "golden_needle",
            type="needle",
            language="fr",
            labels="[absent, present]",
            source="{id: made, generated: true}",
            reader=needle,
            metric="{primary: accuracy, paper: accuracy}",
        ),
        "nested": str(make_nested(folder, lines=60)),
    }


def _names(folder: Path, spec: Callable[..., str]) -> str:
    """A corpus of names: a mention of a topic is a text's fourth and fifth word."""
    topics = _topics()
    for split, size in (("train", 60), ("validation", 30), ("test", 40)):
        blocks = []
        for number, d in enumerate(topics[split][:size]):
            surface = " ".join(d.text.split()[3:5])
            row = f"{split}{number}\t0\t{len(surface)}\t{surface}\tTopic\t{d.labels[0]}"
            blocks.append(f"{split}{number}|t|{surface}\n{split}{number}|a|.\n{row}\n")
        (folder / "rows" / f"{split}.txt").write_text("\n".join(blocks), encoding="utf-8")
    return spec(
        "golden_names",
        type="synonyms",
        frozen=", encoder: frozen",
        labels="{collected: 4}\nprobe: {kind: similarity, pooling: mean}",
        source=_ROWS.replace(".tsv", ".txt"),
        reader="{format: pubtator, label: concept}",
        metric="{primary: accuracy_at_1, paper: mrr}",
    )


def machine() -> str:
    """Changes with what may change the last digits of a number: processor, its instructions, torch."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
        # The name alone can be that of a whole series, as on rented machines.
        tells = ("vendor_id", "cpu family", "model", "stepping", "flags")
        processor = "\n".join(line for line in first if line.startswith(tells))
    except OSError:
        processor = platform.processor()
    parts = (processor, torch.backends.cpu.get_cpu_capability(), torch.__version__, hf.__version__)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _record(results: Path, task: str, key: str) -> dict[str, Any]:
    """A record's content without time and place; its protocol and decisions as digests."""
    store = Store(results)
    record = store.get(task, key)
    assert record is not None
    _, predictions = store.load_predictions(record)
    kept = record.model_dump(mode="json", exclude={"cost", "provenance", "predictions_sha256"})
    kept["protocol"] = _digest(kept["protocol"])
    kept["decided"] = _digest([[p.document, p.spans, p.labels, p.tags] for p in predictions])
    return kept


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def golden_runs(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, record) of every run, made below `folder`."""
    tasks = write_tasks(folder / "tasks")
    models = {family: write_checkpoint(family, folder / family) for family in ("bert", "modernbert")}
    for name, (family, task, overrides) in RUNS.items():
        fast = ("training.precision=fp32", "training.epochs=8", "training.learning_rate=4e-3")
        (result,) = biobench.run(
            str(models[family]),
            tasks.get(task, task),
            seeds=3,
            data_dir=folder / "tasks",
            results_dir=folder / "results",
            device="cpu",
            overrides=[*fast, *overrides],
            limit=80 if task.startswith("demo") else None,
            gate=False,
            track="frozen" if task == "golden_names" else "fixed",
        )
        assert result.status == "done", f"{name}: {result.reason}"
        assert result.key is not None
        yield name, _record(folder / "results", result.task, result.key)
    task = tasks["golden_relation"]
    (result,) = biobench.run(
        str(models["modernbert"]),
        task,
        seeds=4,
        track="tuned",
        data_dir=folder / "tasks",
        results_dir=folder / "results",
        device="cpu",
        overrides="training.grid=[0.5, 1.0]",
        gate=False,
    )
    assert result.key is not None
    yield "relation modernbert tuned", _record(folder / "results", result.task, result.key)


def golden_pretraining(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, ledger without time and place) of the pretraining pair, made below `folder`."""
    from trainer import api

    for name, (recipe, overrides) in PRETRAINED.items():
        shrunk = [*_SMALL, *overrides, f"corpus.cache={folder / 'corpora'}"]
        out = folder / name
        assert api.pretrain(recipe, out=out, overrides=shrunk, progress="none").status == "done"
        ledger = json.loads((out / "ledger.json").read_text(encoding="utf-8"))
        yield name, {k: v for k, v in ledger.items() if k not in ("seconds", "finished", "packages", "code_version")}


def golden(folder: Path) -> dict[str, Any]:
    """All of it."""
    return {
        "machine": machine(),
        "runs": dict(golden_runs(folder / "runs")),
        "pretraining": dict(golden_pretraining(folder / "pretraining")),
    }


def main() -> None:
    """Write the file anew."""
    torch.set_num_threads(1)  # as the test: sums of several threads are rounded otherwise
    with TemporaryDirectory() as folder:
        found = golden(Path(folder))
    FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"{FILE}: {len(found['runs'])} runs, {len(found['pretraining'])} pretrained\n")


if __name__ == "__main__":
    main()
