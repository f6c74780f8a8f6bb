"""Small runs of every kind of task on two families of encoders, and a pair of the trainer, whose
results are fixed.

The checkpoints are written without any library's random numbers or file formats, so their hashes,
and with them the keys of the runs, are the same everywhere. What the runs gave stands in
`tests/golden/golden_runs.json`;

    python -m tests.helpers.golden_make

writes it anew (one thread, some 40 s) on any machine: another one changes the last digits of
numbers and the digests that hang on them. Every other difference is to be explained in the change
that makes it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import random
from collections.abc import Iterator
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
from tests.helpers.checkpoints import FAMILIES, IDS, SPECIAL
from tests.helpers.span_make import make_nested
from tests.helpers.spec_make import write_spec

FILE = Path(__file__).parent.parent / "golden" / "golden_runs.json"

TOKENIZERS = FILE.with_name("golden_tokenizers.json")
"""tokenizer.json of both families without its vocabulary, and tokenizer_config.json."""

_ROWS = (
    "{id: made, folder: rows, files: {train: train.tsv, validation: validation.tsv, test: "
    "test.tsv}}"
)
_TRAINING = {"epochs": 8, "learning_rate": 4e-3, "batch_size": 8, "precision": "fp32"}
_ACCURACY = {"primary": "accuracy", "paper": "accuracy"}
_TOPICS = "[cardiology, gastroenterology, neurology, pneumology]"
_PROBE = (
    "training.encoder=frozen",
    "probe={learning_rates: [3e-3, 3e-2], epochs: 16, segments: 4, batch_size: 8}",
)

_WINDOWS = "protocol={long_documents: stride, max_length: 16, stride: 4}"
_MEAN = (
    "protocol={long_documents: stride, max_length: 16, stride: 4, merge: mean}",
    "head.pooling=mean",
)
_BIAFFINE = (
    "head={kind: span, pooling: mean, span: {variant: biaffine, biaffine_width: 8, max_span: 3}}"
)
_TUNED = "head={kind: sequence, threshold: tuned}"
_EXAMPLES = (
    *("training.positive_weights=ratio", "head={kind: sequence, fallback: top1, threshold: 0.6}"),
    *("metric.primary=example_f1", "training.evaluate_every=7", "training.patience=1"),
)
_LINEAR = (*_PROBE, "probe.kind=linear", "training.positive_weights=ratio", _TUNED)

RUNS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "tags bert": ("bert", "demo_ner", ("training.epochs=16",)),
    "tags modernbert windows": ("modernbert", "demo_ner", (_WINDOWS,)),
    "tags bert frozen": ("bert", "demo_ner", _PROBE),
    "spans bert": ("bert", "nested", ("head.span={width: 32, layers: 1, biaffine_width: 8}",)),
    "spans modernbert biaffine windows": ("modernbert", "nested", (_BIAFFINE, _WINDOWS)),
    "one label bert": ("bert", "demo_topic", ()),
    "one label modernbert windows": ("modernbert", "demo_topic", _MEAN),
    "one label modernbert frozen": ("modernbert", "demo_topic", _PROBE),
    "several labels bert": ("bert", "golden_several", (_TUNED,)),
    "several labels modernbert": ("modernbert", "golden_several", _EXAMPLES),
    "several labels bert frozen": ("bert", "golden_several", _LINEAR),
    "relation bert": ("bert", "golden_relation", ()),
    "relation modernbert": ("modernbert", "golden_relation", ("training.batching=bucketed",)),
    "pair of texts bert": ("bert", "golden_pair", ()),
    "pair of texts modernbert": ("modernbert", "golden_pair", ("protocol.max_length=24",)),
    "labelled pair bert": (
        "bert",
        "golden_text_pair",
        ("protocol={max_length: 24, pairs: shorten_text}",),
    ),
    "numbers bert": ("bert", "golden_numbers", ("training.epochs=16",)),
    "options modernbert": ("modernbert", "golden_options", ()),
    "names bert": ("bert", "golden_names", ()),
    "needle bert frozen": ("bert", "golden_needle", (*_PROBE, "protocol.max_length=192")),
    "needle modernbert": ("modernbert", "golden_needle", ("protocol.max_length=224",)),
}
"""Name of a run to its family of encoders, its task and its overrides."""

PRETRAINED = {"detour": "toy_detour", "twin": "toy_mlm_twin"}
"""The pretraining pair: name to recipe."""


def _topics() -> dict[str, list[Document]]:
    return load_data(load_task("demo_topic"), None).documents


def write_checkpoint(family: str, folder: Path) -> Path:
    """Write a checkpoint of `family` that is the same, byte for byte, on every machine."""
    folder.mkdir(parents=True)
    words = sorted({w for d in _topics()["train"] for w in d.text.split()})
    letters = sorted(
        {c for w in words for c in w.lower() + w}
        | set("abcdefghijklmnopqrstuvwxyz0123456789.,;:/()'-%")
    )
    vocabulary: Any
    if family == "bert":
        entries = [*SPECIAL, *letters, *(f"##{c}" for c in letters)]
        entries += sorted({w.lower() for w in words} - set(entries))
        vocabulary = {entry: i for i, entry in enumerate(entries)}
    else:
        entries = [*SPECIAL, "▁", *letters, *(f"▁{w}" for w in words)]
        vocabulary = [[e, -1.0 if e.startswith("▁") else -4.0] for e in entries]
    stored = json.loads(TOKENIZERS.read_text(encoding="utf-8"))
    stored[family]["model"]["vocab"] = vocabulary
    _write_json(folder / "tokenizer.json", stored[family])
    _write_json(folder / "tokenizer_config.json", stored["config"])
    config_class, _, sizes = FAMILIES[family]
    fields = sizes | (IDS if family == "modernbert" else {"pad_token_id": 1})
    fields |= {"vocab_size": len(entries), "max_position_embeddings": 300}
    model = hf.AutoModel.from_config(config_class(**fields))
    draw = np.random.RandomState(7)  # whose numbers never change from one version to the next
    weights = {}
    for name, old in sorted(model.state_dict().items()):
        if name.endswith("bias") or old.ndim == 1:
            weights[name] = np.full(old.shape, 0 if name.endswith("bias") else 1, np.float32)
        else:
            weights[name] = ((draw.random_sample(tuple(old.shape)) - 0.5) * 0.25).astype(np.float32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    about = {"model_type": model.config.model_type, "architectures": [type(model).__name__]}
    _write_json(folder / "config.json", about | fields)
    return folder


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, sort_keys=True), encoding="utf-8")


def write_tasks(folder: Path) -> dict[str, str]:
    """Write corpora and specs below `folder`; task id to what names the task."""
    (folder / "rows").mkdir(parents=True)
    _write_names(folder)
    topics = _topics()
    draw = random.Random(5)
    related = {"cardiology": "treats", "neurology": "causes"}
    for split, size in (("train", 48), ("validation", 24), ("test", 24)):
        lines, questions = ["asked\ttext\ttopic\tseveral\trelation\tsame\tsize"], []
        for number, d in enumerate(topics[split][:size]):
            (topic,) = d.labels
            asked = (
                topic if draw.random() < 0.5 else draw.choice([t for t in related if t != topic])
            )
            several = (
                "|".join([topic, *(["long"] if len(d.text) > 60 else [])]) if number % 8 else ""
            )
            row = (
                asked,
                d.text,
                topic,
                several,
                related.get(topic, "none"),
                "yes" if asked == topic else "no",
            )
            lines.append("\t".join((*row, str(len(d.text)))))
            question = {
                "asked": d.text,
                "a": topic,
                "b": asked,
                "right": ["a", "b"] if asked == topic else ["a"],
            }
            questions.append(json.dumps(question))
        (folder / "rows" / f"{split}.jsonl").write_text(
            "\n".join(questions) + "\n", encoding="utf-8"
        )
        (folder / "rows" / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def spec(
        type: str, labels: str, reader: str, metric: Any = "{paper: micro_f1}", **more: Any
    ) -> dict[str, Any]:
        plain = {"source": _ROWS, "training": _TRAINING, "protocol": "{max_length: 64}"}
        return plain | {"type": type, "labels": labels, "reader": reader, "metric": metric} | more

    several = "{format: tsv, columns: {text: text, label: several}, label_separator: '|'}"
    relation = "{format: tsv, columns: {text: text, label: relation}}"
    positive = "{primary: micro_f1_positive, paper: micro_f1_positive, negative_label: none}"
    pair = "{format: tsv, columns: {text: text, label: same, first: asked}}"
    choices = "{format: choices, layout: lines, question: asked, options: [a, b], right: right}"
    names = "{collected: 4}\nprobe: {kind: similarity, pooling: mean}"
    needle = (
        "{format: needle, lengths: [192, 224], notes: 300, examples: {train: 48, validation: "
        "12, test: 24}}"
    )
    specs = {
        "several": spec("multi_label", _TOPICS[:-1] + ", long]", several),
        "relation": spec("relation", "[none, treats, causes]", relation, positive),
        "pair": spec("single_label", '["no", "yes"]', pair, _ACCURACY),
        "text_pair": spec("text_pair", '["no", "yes"]', pair, _ACCURACY),
        "numbers": spec(
            *("regression", "[length]\nscale: [0, 400]", pair.replace("same", "size")),
            "{primary: pearson, paper: spearman}",
        ),
        "options": spec(
            *("multiple_choice", "[a, b]", choices, "{primary: exact_match, paper: hamming}"),
            source=_ROWS.replace(".tsv", ".jsonl"),
        ),
        "names": spec(
            *(
                "synonyms",
                names,
                "{format: pubtator, label: concept}",
                "{primary: accuracy_at_1, paper: mrr}",
            ),
            training=_TRAINING | {"encoder": "frozen"},
            source=_ROWS.replace(".tsv", ".txt"),
        ),
        "needle": spec(
            "needle",
            "[absent, present]",
            needle,
            _ACCURACY,
            language="fr",
            source="{id: made, generated: true}",
        ),
    }
    paths = {
        f"golden_{name}": str(write_spec(folder / f"golden_{name}.yaml", **f))
        for name, f in specs.items()
    }
    return paths | {"nested": str(make_nested(folder, lines=60))}


def _write_names(folder: Path) -> None:
    """A corpus of names: a mention of a topic is a text's fourth and fifth word."""
    topics = _topics()
    for split, size in (("train", 60), ("validation", 30), ("test", 40)):
        blocks = []
        for number, d in enumerate(topics[split][:size]):
            surface = " ".join(d.text.split()[3:5])
            row = f"{split}{number}\t0\t{len(surface)}\t{surface}\tTopic\t{d.labels[0]}"
            blocks.append(f"{split}{number}|t|{surface}\n{split}{number}|a|.\n{row}\n")
        (folder / "rows" / f"{split}.txt").write_text("\n".join(blocks), encoding="utf-8")


def machine() -> str:
    """Changes with what may change the last digits of a number: processor, its instructions,
    torch."""
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
    models = {
        family: write_checkpoint(family, folder / family) for family in ("bert", "modernbert")
    }
    where: dict[str, Any] = {
        "data_dir": folder / "tasks",
        "results_dir": folder / "results",
        "device": "cpu",
    }
    fast = ("training.precision=fp32", "training.epochs=8", "training.learning_rate=4e-3")
    runs = [*RUNS.items(), ("relation modernbert tuned", ("modernbert", "golden_relation", ()))]
    for name, (family, task, overrides) in runs:
        options: dict[str, Any] = {"seeds": 3, "overrides": [*fast, *overrides]}
        options |= {"limit": 80} if task.startswith("demo") else {}
        options |= {"track": "frozen"} if task == "golden_names" else {}
        if name.endswith("tuned"):
            options = {"seeds": 4, "track": "tuned", "overrides": "training.grid=[0.5, 1.0]"}
        (result,) = biobench.run(
            str(models[family]), tasks.get(task, task), gate=False, **options, **where
        )
        assert result.status == "done", f"{name}: {result.reason}"
        yield name, _record(folder / "results", result.task, result.key)


def golden_pretraining(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, ledger without time and place) of the pretraining pair, made below `folder`."""
    from tests.helpers.trainer_make import SMALL, train

    for name, recipe in PRETRAINED.items():
        out = folder / name
        assert train(out, [*SMALL, f"corpus.cache={folder / 'corpora'}"], recipe).status == "done"
        ledger = json.loads((out / "ledger.json").read_text(encoding="utf-8"))
        yield (
            name,
            {
                k: v
                for k, v in ledger.items()
                if k not in ("seconds", "finished", "packages", "code_version")
            },
        )


def main() -> None:
    """Write the file anew."""
    torch.set_num_threads(1)  # as the test: sums of several threads are rounded otherwise
    with TemporaryDirectory() as folder:
        runs, pretrained = (
            golden_runs(Path(folder) / "runs"),
            golden_pretraining(Path(folder) / "pretraining"),
        )
        whole = {"machine": machine(), "runs": dict(runs), "pretraining": dict(pretrained)}
    FILE.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
