"""`data fetch` of hub sources, `tasks new` by name, `results push` and `results pull`.

A server with the hub's protocol answers.
"""

import hashlib
from pathlib import Path

import yaml

from biobench.submission.pack import submit
from tests.helpers.hub_commands import refusal
from tests.helpers.hub_repo import Repository
from tests.helpers.reading import parquet
from tests.helpers.spec_make import write_spec
from tests.helpers.submission_make import honest_run

SPLITS = ("train", "validation", "test")
PARQUET = "{format: parquet, columns: {id: id, text: text, labels: label}}"
TSV = "{format: tsv, columns: {text: text, label: label}}"


def table_of(split: str) -> bytes:
    """Three documents."""
    return parquet(
        [{"id": f"{split}id{n}", "text": f"{split}text{n}", "label": str(n % 2)} for n in range(3)]
    )


def tsv(split: str) -> bytes:
    """The same as a table."""
    return "".join(["text\tlabel\n", *(f"{split} text {n}\t{n % 2}\n" for n in range(3))]).encode()


def spec(folder: Path, id: str, where: str, ending: str, reader: str) -> Path:
    """A task whose only source is `where`."""
    files = "{" + ", ".join(f"{s}: {s}.{ending}" for s in SPLITS) + "}"
    source = f"\n  id: there\n  folder: {id}\n  files: {files}\n  {where}\n"
    return write_spec(
        folder / f"{id}.yaml",
        type="single_label",
        source=source,
        reader=reader,
        labels='["0", "1"]',
    )


CHECKED = """
import sys
from biobench.cli.main import main
from biobench.submission import repository
from biobench.submission.verify import examine
repository.verify = examine
sys.argv = {arguments!r}
main()
"""
"""A command that checks submissions in its own process, which spares seconds each."""


def test_sources_on_the_hub_are_fetched_at_their_commit(hub, command, tmp_path):
    wanted = {f"all/{s}.parquet": table_of(s) for s in SPLITS}
    repository = hub.repository(
        "datasets", "org/texts", {**wanted, "texts.py": b"raise SystemExit", "README.md": b"x"}
    )
    first = repository.refs["main"]
    second = repository.commit({"all/train.parquet": table_of("test")})
    # between two files of it the branch moves on, and the hub is busy
    hub.fault("GET /api/datasets/org/texts/revision/main", "status", 429, body=b"0")
    hub.fault(f"GET /api/datasets/org/texts/tree/{second}", "status", 503, body=b"0")
    hub.after(
        f"GET /api/datasets/org/texts/tree/{second}",
        lambda: repository.commit({"all/validation.parquet": table_of("test")}),
    )
    lines = {f"{s}.tsv": tsv(s) for s in SPLITS}
    hub.repository("datasets", "org/gated", lines, gated=True)
    hub.repository("datasets", "org/bits", wanted)
    hub.account("inside", granted={"org/gated"})
    hub.fault("GET /datasets/org/texts/", "cut", 100)
    flipped = bytearray(table_of("train"))
    flipped[-9] ^= 1
    hub.fault(
        f"GET /datasets/org/bits/{hashlib.sha256(table_of('train')).hexdigest()}",
        "body",
        body=bytes(flipped),
        times=-1,
    )

    def at(
        name: str, revision: str, ending: str = "parquet", path: str = "all", id: str | None = None
    ) -> Path:
        reader = PARQUET if ending == "parquet" else TSV
        where = f"hub: {{repo: org/{name}, revision: {revision}, path: '{path}'}}"
        return spec(tmp_path, id or name, where, ending, reader)

    pinned = at("texts", first)
    data = ("--data-dir", tmp_path / "data")
    fetched, verified, moving, gated, bits, inside = command.several(
        ("data fetch", pinned, *data, "--json"),
        ("data verify", pinned, *data, "--json"),
        ("data fetch", at("texts", "main", id="moving"), *data, "--json"),
        ("data fetch", at("gated", "main", "tsv", ""), *data),
        ("data fetch", at("bits", "main"), *data),
        ("token=inside", "data", "fetch", tmp_path / "gated.yaml", *data),
    )
    names = " ".join(Path(file).name for file in fetched.json()[0]["files"])
    assert names == "test.parquet train.parquet validation.parquet"
    assert (tmp_path / "data" / "texts" / "train.parquet").read_bytes() == table_of("train"), (
        "of the pinned commit"
    )
    assert [r["counts"]["train"]["documents"] for r in verified.json()] == [3]
    assert f"'main' was commit {second}" in moving.json()[0]["notes"][0]
    assert repository.refs["main"] != second
    assert (tmp_path / "data" / "moving" / "validation.parquet").read_bytes() == table_of(
        "validation"
    )
    assert not hub.requests("texts.py|README.md")
    assert "it is gated, and no token was sent" in refusal(gated)
    assert f"accept its terms at {hub.address}/datasets/org/gated" in gated.err
    assert "train.parquet: its content is" in refusal(bits)
    assert inside.status == 0, inside.err
    assert not (tmp_path / "data" / "bits" / "train.parquet").exists()
    # later, without the hub
    hub.forget()
    again, other = command.several(
        ("data fetch", pinned, *data),
        ("data fetch", pinned, "--data-dir", tmp_path / "other"),
        offline=True,
    )
    assert "already available" in again.out
    assert (other.status, len(list((tmp_path / "other" / "texts").iterdir()))) == (0, 3), (
        "from the cache"
    )
    assert not hub.seen


CONFIGURED = b"""---
configs:
- {config_name: notes, data_files: [{split: train, path: n/a-*}, {split: test, path: n/b-*}]}
- {config_name: others, data_files: others/*}
---
"""


def test_a_data_set_becomes_a_task_by_its_name(hub, command, tmp_path):
    files = {"README.md": CONFIGURED, "others/x.parquet": table_of("other")}
    files |= {"n/a-0.parquet": table_of("train"), "n/b-0.parquet": table_of("test")}
    repository = hub.repository("datasets", "org/texts", files)
    first = repository.refs["v1"] = repository.refs["main"]
    repository.commit({"n/a-0.parquet": table_of("test")})
    new = ("tasks new hub:org/texts:notes --revision v1 --data-dir", tmp_path / "data", "--id")
    made, fetched, verified, several, gone = command.several(
        (*new, "made", "--out", tmp_path / "made.yaml"),
        ("data fetch", tmp_path / "made.yaml", "--data-dir", tmp_path / "again", "--json"),
        ("data verify", tmp_path / "made.yaml", "--data-dir", tmp_path / "again", "--json"),
        ("tasks new hub:org/texts --id other",),
        ("tasks new hub:org/none --id other",),
    )
    assert f"configuration notes, commit {first}" in made.ok().out
    spec_text = (tmp_path / "made.yaml").read_text()
    assert f'hub: {{repo: "org/texts", config: notes, revision: "{first}"}}' in spec_text
    assert fetched.json()[0]["notes"] == []
    assert verified.json()[0]["counts"]["test"]["documents"] == 3
    assert "it has several configurations" in refusal(several)
    assert "hub:org/texts:CONFIG: notes, others" in several.err
    assert "it does not exist, or is private" in refusal(gone)
    assert not hub.requests("others/x.parquet")
    hub.forget()
    offline = command(*new, "other", offline=True)
    assert "the hub was not asked (--offline or HF_HUB_OFFLINE)" in refusal(offline)
    assert not hub.seen


def test_results_go_to_a_dataset_as_one_open_request_and_come_back(hub, command, tmp_path):
    honest_run(tmp_path / "mine", model="org/first")
    packed = submit("org/first", tmp_path / "mine", tmp_path / "packed" / "first")
    repository: Repository = hub.repository(
        "datasets", "org/results", {"README.md": b"results", "load.py": b"x"}
    )
    hub.account("reader")
    hub.account("writer", writes={"org/results"})
    push = ("results", "push", "hub:org/results", str(packed))
    code = CHECKED.format(arguments=["biobench", *push])
    nobody, reader, sent = command.several(
        ("-c", code), ("token=reader", "-c", code), ("token=writer", *push), HF_HUB_DISABLE_XET="1"
    )
    assert "hub dataset org/results: the hub wants a token" in refusal(nobody)
    assert "the hub forbids it: You don't have the rights" in refusal(reader)
    assert sent.status == 0, sent.err
    assert f"open the request at {hub.address}/datasets/org/results/discussions/1" in sent.out
    (request,) = repository.requests
    assert (request.status, request.title) == ("open", "Submission: org/first")
    there = repository.commits[repository.refs["refs/pr/1"]]
    for path in packed.rglob("*"):
        if path.is_file():
            name = path.relative_to(packed).as_posix()
            assert there[f"submitted/first/{name}"] == path.read_bytes()
    assert len(hub.requests("POST .*/commit/main")) == 1
    # its owner merges it; another pulls it, also after a cut; a second time nothing is downloaded
    repository.refs["main"] = repository.refs["refs/pr/1"]
    hub.forget()
    hub.fault("GET /datasets/org/results/", "cut", 50)
    hub.fault("GET /api/datasets/org/results", "status", 503, body=b"0")
    pull = ("results", "pull", "hub:org/results", "--results-dir", tmp_path / "theirs", "--json")
    first, second = command.several(pull, pull)
    assert [s["outcome"] for s in first.json()[0]["submissions"]] == ["new"]
    assert first.json()[0]["commit"] == repository.refs["main"]
    assert [s["outcome"] for s in second.json()[0]["submissions"]] == ["unchanged"]
    assert not hub.requests("load.py")


def test_a_models_results_are_sent_to_its_repository(hub, command, tmp_path):
    honest_run(tmp_path / "mine", model="org/first")
    card = (
        "---\nlicence: mit\ntags: [theirs]\nmodel-index:\n- name: first\n  results: []\n---\n# "
        "First\n"
    )
    carded = hub.repository("models", "org/first", {"README.md": card.encode()})
    bare = hub.repository("models", "org/bare", {"config.json": b"{}"})
    hub.account("writer", writes={"org/first", "org/bare"})
    export = ("export", "org/first", "--results-dir", tmp_path / "mine", "--push")
    sent, file, bare_card, table = command.several(
        ("token=writer", *export, "org/first"),
        ("token=writer", *export, "org/first", "--format eval-results --dataset org/bench"),
        ("token=writer", *export, "org/bare"),
        (*export, "org/first", "--format bibtex"),
    )
    assert sent.out == f"request: {hub.address}/org/first/discussions/1\n", sent.err
    assert [r.status for r in carded.requests] == ["open", "open"]
    readme = carded.commits[carded.refs["refs/pr/1"]]["README.md"].decode()
    head = yaml.safe_load(readme.split("---\n")[1])
    assert (head["licence"], head["tags"]) == ("mit", ["theirs"])
    assert readme.endswith("---\n# First\n")
    results = head["model-index"][0]["results"]
    assert {metric["type"] for result in results for metric in result["metrics"]} == {"f1"}
    assert file.status == 0, file.err
    rows = yaml.safe_load(carded.commits[carded.refs["refs/pr/2"]][".eval_results/biobench.yaml"])
    assert [row["dataset"]["task_id"] for row in rows] == ["demo_topic"]
    assert bare_card.status == 0, bare_card.err
    assert b"## Results with BioBench" in bare.commits[bare.refs["refs/pr/1"]]["README.md"]
    assert bare.commits[bare.refs["main"]] == {"config.json": b"{}"}, (
        "nothing changes before the owners merge"
    )
    assert "format 'bibtex' is nothing for a model's repository" in table.refusal()
