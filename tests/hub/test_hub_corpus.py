"""The trainer's text and base checkpoints from a server with the hub's protocol: streamed, by
commit.
"""

import json
import re
from pathlib import Path

import pytest

from tests.helpers.hub_commands import refusal
from tests.helpers.reading import parquet
from tests.helpers.trainer_make import TEXTS

RECIPE = """
name: from_hub
base: BASE
corpus: {sources: [SOURCE], sequence_length: 32, held_out: 0.1}
batch: {sequences: 4}
optimizer: {learning_rate: 1e-3}
phases:
  - {name: only, objective: mlm, masking: {rate: 0.15}, tokens: 1k, schedule: {shape: constant}}
"""
NEW = """{config: {model_type: modernbert, hidden_size: 32, intermediate_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 2, local_attention: 16, max_position_embeddings: 128},
  tokenizer: {vocabulary: 400}}"""

STREAM = """
import json
from trainer.corpus.hub import stream
from trainer.recipe.corpus import CorpusSource
print(json.dumps(list(stream(CorpusSource(id="hub", hub="org/corpus", revision={revision!r})))))
"""
REFUSALS = {
    "gated": "dataset 'org/gated' is not available: Dataset 'org/gated' is a gated dataset on the "
    "Hub",
    "gone": "the hub does not tell the revision of dataset 'org/corpus': it has no revision 'v9'",
    "script": "dataset 'org/script' is not available: Dataset scripts are no longer supported",
    "field": "dataset 'org/lines' has no text under 'body' (fields: text)",
}


def part(number: int, parts: int) -> bytes:
    """One file of the dataset."""
    return parquet([{"text": f"{t} {number}"} for t in TEXTS[number::parts] * 3])


def recipe(
    folder: Path, name: str, source: str = "{id: hub, hub: org/lines}", base: str = NEW
) -> Path:
    """A recipe with this source and base."""
    path = folder / f"{name}.yaml"
    path.write_text(RECIPE.replace("SOURCE", source).replace("BASE", base))
    return path


LINES = "".join(json.dumps({"text": t}) + "\n" for t in TEXTS * 3).encode()


def test_a_corpus_is_streamed_from_the_commit_that_it_names(hub, command, tmp_path):
    shards = {f"data/train-{n:05}-of-00004.parquet": part(n, 4) for n in range(4)}
    repository = hub.repository(
        "datasets", "org/corpus", {**shards, "load.py": b"raise SystemExit"}
    )
    hub.repository("datasets", "org/script", {**shards, "script.py": b"raise SystemExit"})
    first = repository.refs["v1"] = repository.refs["main"]
    repository.commit({"data/train-00000-of-00004.parquet": part(1, 4)})
    hub.repository("datasets", "org/lines", {"train.jsonl": LINES})
    hub.repository("datasets", "org/gated", {"train.jsonl": LINES}, gated=True)
    streamed = command("-c", STREAM.format(revision=first))
    assert json.loads(streamed.out) == [f"{t} {n}" for n in range(4) for t in TEXTS[n::4] * 3]
    hub.fault("GET /datasets/org/corpus/", "cut", 200)
    hub.fault("GET /api/datasets/org/lines", "status", 429, body=b"0")
    cache = ("--cache", str(tmp_path / "corpora"), "--quiet", "--no-exclude-tasks")
    wanted = {
        "parts": "{id: hub, hub: org/corpus, revision: v1}",
        "lines": "{id: hub, hub: org/lines}",
        "gated": "{id: hub, hub: org/gated}",
        "gone": "{id: hub, hub: org/corpus, revision: v9}",
        "script": "{id: hub, hub: org/script}",
        "field": "{id: hub, hub: org/lines, field: body}",
    }
    files = {name: recipe(tmp_path, name, source) for name, source in wanted.items()}
    answers = command.several(*(("corpus", "build", file, *cache) for file in files.values()))
    built = dict(zip(files, answers, strict=True))
    lines = hub.repositories["datasets", "org/lines"].refs["main"]
    for name, commit in (("parts", first), ("lines", lines)):
        assert built[name].status == 0, built[name].err
        folder = Path(built[name].out.partition(": a corpus")[0])
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["sources"][0]["revision"] == commit
    for n in range(4):
        assert hub.requests(f"resolve/{first}/data/train-0000{n}"), "of the commit and no other"
    assert not hub.requests("resolve/.*load.py")
    for name, words in REFUSALS.items():
        assert refusal(built[name]).startswith(words), name


@pytest.fixture
def files(encoder: dict[str, bytes], tmp_path: Path) -> dict[str, bytes]:
    """The encoder with its prediction head."""
    from transformers import AutoConfig, ModernBertForMaskedLM

    for name, content in encoder.items():
        (tmp_path / name).write_bytes(content)
    ModernBertForMaskedLM(AutoConfig.from_pretrained(tmp_path)).save_pretrained(tmp_path / "base")
    return {**encoder, **{p.name: p.read_bytes() for p in (tmp_path / "base").iterdir()}}


def test_a_base_checkpoint_comes_from_the_hub_and_then_from_its_cache(
    hub, command, files, tmp_path
):
    """`pretrain plan`, what the script of `slurm --nodes` names for before the job, a run, and the
    job itself.
    """
    repository = hub.repository("models", "org/base", files)
    first = repository.refs["v1"] = repository.refs["main"]
    repository.commit({"config.json": b"{}"})
    hub.repository("models", "org/gated", files, gated=True)
    text = hub.repository("datasets", "org/lines", {"train.jsonl": LINES}).refs["main"]
    path = recipe(
        tmp_path,
        "recipe",
        f"{{id: hub, hub: org/lines, revision: {text}}}",
        "{model: org/base, revision: v1}",
    )
    gated, out = recipe(tmp_path, "gated", base="{model: org/gated}"), tmp_path / "runs" / "model"
    hub.fault("GET /api/models/org/base", "status", 503, body=b"0")
    script, planned, refused = command.several(
        ("slurm --nodes 2 --time 60 -- pretrain", path, "--out", out),
        ("pretrain plan", path, "--json"),
        ("pretrain plan", gated),
    )
    assert planned.status == 0, planned.err
    assert planned.json()["steps"] > 0
    assert "gated" in refusal(refused)
    (before,) = re.findall("# before, on one machine: biobench (corpus build .*)", script.out)
    built = command(*before.split(), "--no-exclude-tasks")
    assert built.status == 0, built.err
    assert not hub.requests("org/base/.*safetensors$"), "neither a plan nor a corpus needs weights"
    job = ("pretrain", path, "--out", out, "--built-corpus", "--no-exclude-tasks")
    early = command(*job, offline=True)
    assert early.err.endswith(
        f"`hf download org/base --revision {first}`, on a machine with a network\n"
    )
    # the tag moves before the weights are asked for, and the connection breaks once
    hub.after("GET /api/models/org/base", lambda: repository.commit({"config.json": b"{}"}, "v1"))
    hub.fault("GET /models/org/base/", "cut", 1000)
    done = command("pretrain", path, "--out", str(tmp_path / "run"), "--no-exclude-tasks")
    assert done.status == 0, done.err
    ledger = json.loads((tmp_path / "run" / "ledger.json").read_text())
    assert repository.refs["v1"] != first
    assert (ledger["base"]["source"], ledger["base"]["revision"]) == ("org/base", first)
    assert ledger["corpus"]["revisions"] == {"hub": text}
    assert hub.requests(f"org/base/resolve/{first}/.*safetensors")
    assert not hub.requests("org/base/resolve/v1/"), (
        "every file is of the commit that the tag stood for at first"
    )
    hub.forget()
    done = command(*job, offline=True)
    assert done.status == 0, done.err
    assert not hub.seen
    assert json.loads((out / "ledger.json").read_text())["base"]["revision"] == first
