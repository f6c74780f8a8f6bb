"""What is killed: a command, what it needs, and what its result is when nothing disturbs it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biobench.store import Store
from tests.helpers.fetch_make import Server, zipped
from tests.helpers.spec_make import local, write_spec
from tests.helpers.submission_make import honest_run
from tests.helpers.tiny import make_tiny_encoder
from tests.helpers.trainer_make import SMALL

RUNS = 16
LONGER = (*SMALL, "phases.0.tokens=9216", "phases.1.tokens=6144")
RUN = [
    "--seeds 1-2 --set training.epochs=3 --device cpu --parallel 1 --save-every 0",
]
"""Two runs with their state on disk after each step."""
NAMES = ("pretrain", "corpus build", "data fetch", "rescore", "submit", "index", "run", "gate")


def files(folder: Path) -> dict[str, str]:
    """Relative name to hash of every file; what a dead process may leave for an hour is not
    counted.
    """
    names = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        name.as_posix(): hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in names
        if "locks" not in name.parts
        and not any(p.startswith(".") and ".tmp" in p for p in name.parts)
    }


@dataclass(frozen=True)
class Target:
    """A command that is killed.

    fresh: makes what one chain of kills works on, and gives it. command: the words, given that and
    where to write to.
    out: where it writes by default. result: what it has made, as plain data that is equal whenever
    the result is.
    needs: what the command reads, and may vanish. finished: what it says where it was whole before.
    """

    name: str
    fresh: Callable[[Path], Path]
    command: Callable[[Path, Path], list[str | Path]]
    out: str
    result: Callable[[Path], Any]
    needs: Callable[[Path], Path] = Path
    finished: str = ""

    def arguments(self, place: Path) -> list[str | Path]:
        """The command that writes to its usual place."""
        return self.command(place, place / self.out)

    def over(self, message: str) -> bool:
        """Whether the command refused because it had ended before."""
        return bool(self.finished) and self.finished in message


def _plain(place: Path) -> Path:
    place.mkdir(parents=True)
    return place


def _sets(place: Path) -> list[str | Path]:
    values = [text for text in LONGER if "sources.0" not in text]
    values += [f"corpus.root={place}", "corpus.sources=[{id: own, path: text.jsonl}]"]
    return [part for text in values for part in ("--set", text)]


def _with_text(place: Path) -> Path:
    _plain(place)
    rows = [
        {"text": f"Sentence {i} tells of fever and of rest number {i % 13}. " * 6}
        for i in range(150)
    ]
    (place / "text.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    return place


def _pretrained(place: Path) -> Any:
    curve = [
        json.loads(line) for line in (place / "out" / "metrics.jsonl").read_text().splitlines()
    ]
    losses = [(row.get("step"), row.get("loss")) for row in curve]
    weights = {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest()
        for p in (place / "out/model").glob("*.safetensors")
    }
    assert weights
    return [losses, weights]


def _corpus(place: Path) -> Any:
    made = {
        name: digest for name, digest in files(place / "cache").items() if name.endswith(".bin")
    }
    assert made
    return made


def _results(
    template: Path, change: Callable[[Path], None] = lambda results: None
) -> Callable[[Path], Path]:
    """Runs of the demo task, made once."""

    def fresh(place: Path) -> Path:
        if not template.exists():
            aside = template.with_name(f"{template.name}-aside")
            for seed in range(1, RUNS + 1):
                honest_run(aside, seed=seed, model="org/tiny", weights="a" * 64)
            aside.rename(template)
        shutil.copytree(template, _plain(place) / "results")
        change(place / "results")
        return place

    return fresh


def _wrong_scores(results: Path) -> None:
    """Every record tells scores that its predictions do not have."""
    for path in results.glob("runs/*/*.json"):
        record = json.loads(path.read_text())
        record["scores"] = dict.fromkeys(record["scores"], 0.5)
        path.write_text(json.dumps(record), encoding="utf-8")


def _scores(place: Path) -> Any:
    made = {
        p.name: json.loads(p.read_text())["scores"]
        for p in (place / "results/runs").glob("*/*.json")
    }
    assert len(made) == RUNS
    return made


def _packed(place: Path) -> Any:
    made = files(place / "pack")
    assert len(made) == 2 * RUNS + 1
    return made


def _index(place: Path) -> Any:
    from biobench.store.index import FILE, read_index

    path = next((place / "results").rglob(FILE))
    return sorted(map(list, read_index(path)))


def _ran(place: Path) -> Any:
    records = Store(place / "results").records()
    assert len(records) == 2
    for record in records:
        assert 0 < record.cost.train_seconds <= record.cost.seconds < 43_200, (
            "by a clock that jumped"
        )
    return sorted(
        (r.key, r.scores["macro_f1"], r.predictions_sha256, r.training.best_step) for r in records
    )


def _verdict(place: Path) -> Any:
    """What the gate says, without when it was asked and how long it took."""
    (verdict,) = (json.loads(p.read_text()) for p in place.glob("results/floors/*/*.json"))
    return {name: value for name, value in verdict.items() if name not in ("made", "seconds")}


def targets(shared: Path, server: Server) -> dict[str, Target]:
    """By name. shared: a folder for what all chains of kills read."""
    store, tiny = shared / "store", make_tiny_encoder(shared / "tiny")
    block = "".join(f"word{i}\tO\nfever\tB-Disease\n\n" for i in range(40_000))
    content = zipped({f"{name}.tsv": block.encode() for name in ("train", "devel", "test")})
    url = f'  url: {{url: "{server.put("corpus.zip", content)}", unpack: zip}}\n'
    source = local("corpus", "{train: train.tsv, validation: devel.tsv, test: test.tsv}", url)
    spec = write_spec(
        shared / "fetched.yaml", source=source, reader="{format: iob}", splits="official"
    )
    pretrain = ("pretrain", "toy_detour", "--resume --quiet --no-exclude-tasks")
    build = ("corpus", "build", "toy_detour", "--no-exclude-tasks")
    every = (
        Target(
            "pretrain",
            _with_text,
            lambda p, out: [
                *pretrain,
                "--out",
                out,
                "--set",
                f"corpus.cache={p / 'cache'}",
                *_sets(p),
            ],
            "out",
            _pretrained,
            lambda p: p / "text.jsonl",
        ),
        Target(
            "corpus build",
            _with_text,
            lambda p, out: [*build, "--cache", out, *_sets(p)],
            "cache",
            _corpus,
        ),
        Target(
            "data fetch",
            _plain,
            lambda p, out: ["data", "fetch", spec, "--data-dir", out],
            "data",
            lambda p: files(p / "data" / "corpus"),
            lambda p: spec,
        ),
        Target(
            "rescore",
            _results(store, _wrong_scores),
            lambda p, out: ["rescore", "--results-dir", out],
            "results",
            _scores,
            lambda p: next((p / "results/runs").glob("*/*.parquet")),
        ),
        Target(
            "submit",
            _results(store),
            lambda p, out: ["submit", "org/tiny", "--results-dir", p / "results", "--out", out],
            "pack",
            _packed,
            finished="is not empty",
        ),
        Target(
            "index",
            _results(store),
            lambda p, out: ["report", "--results-dir", out, "--format json"],
            "results",
            _index,
        ),
        Target(
            "run",
            _plain,
            lambda p, out: ["run", tiny, "--task demo_topic", *RUN, "--results-dir", out],
            "results",
            _ran,
            lambda p: tiny,
        ),
        Target(
            "gate",
            _plain,
            lambda p, out: ["tasks", "gate", "demo_topic", "--results-dir", out],
            "results",
            _verdict,
        ),
    )
    return {target.name: target for target in every}
