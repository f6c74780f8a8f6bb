"""What is fuzzed: sound input to start from, and the function that must read it or refuse it by one
of our errors.
"""

from __future__ import annotations

import atexit
import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.data.unpack import unpack
from biobench.errors import BioBenchError, DataFormatError
from biobench.schema.strict import load_yaml_model
from biobench.schema.tags import Tagging
from biobench.schema.task import TaskSpec
from biobench.score.external import Expected, read_predictions
from biobench.store.baselines import scan_baselines
from biobench.store.index import read_index
from biobench.store.records import from_json
from biobench.store.tables import from_parquet
from biobench.submission.layout import check_manifest
from biobench.submission.unpack import unpack as unpack_submission
from tests.fuzz import zips

if TYPE_CHECKING:
    from tests.fuzz.corpora import Damaged

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "tests" / "fixtures" / "stores" / "record-1"
LIMITS = {"most_bytes": 1 << 24, "most_files": 1_000}


@dataclass(frozen=True)
class Target:
    """begin: makes the sound input. read: raises nothing but errors of the project. share: inputs
    of a hundred.
    """

    begin: Callable[[], tuple[bytes, ...]]
    read: Callable[[bytes], object]
    share: int

    @cached_property
    def seeds(self) -> tuple[bytes, ...]:
        """Sound input to start from."""
        return self.begin()


@lru_cache(maxsize=1)
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="biobench-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _in_file(name: str, content: bytes) -> Path:
    path = _folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _unpacked(read: Callable[[bytes, Path], object]) -> Callable[[bytes], None]:
    """`read` unpacks into a folder that is gone afterwards."""

    def into(content: bytes) -> None:
        try:
            read(content, _folder() / "out")
        finally:
            shutil.rmtree(_folder() / "out", ignore_errors=True)

    return into


def _archive(kind: str) -> Callable[[bytes], None]:
    return _unpacked(
        lambda content, target: unpack(_in_file(f"a.{kind}", content), kind, target, **LIMITS)
    )


def _tars() -> tuple[bytes, ...]:
    made = []
    for mode in ("w", "w:gz", "w:bz2", "w:xz"):
        held = io.BytesIO()
        with tarfile.open(fileobj=held, mode=mode) as archive:  # type: ignore[call-overload]
            for name in ("train.tsv", "x/test.tsv"):
                info = tarfile.TarInfo(name)
                info.size = len(zips.CONTENT)
                archive.addfile(info, io.BytesIO(zips.CONTENT))
        made.append(held.getvalue())
    return tuple(made)


def _packs() -> tuple[bytes, ...]:
    record, table = (min(STORE.glob(f"runs/*/*.{s}")).read_bytes() for s in ("json", "parquet"))
    names = (
        "submission.json",
        f"runs/demo_topic/{'a' * 32}.json",
        f"runs/demo_topic/{'a' * 32}.parquet",
    )
    held = io.BytesIO()
    with zips.zipfile.ZipFile(held, "w", zips.zipfile.ZIP_DEFLATED) as archive:
        for name, content in zip(names, (b"{}", record, table), strict=True):
            archive.writestr(name, content)
    return (held.getvalue(), *(content for _, content in zips.crafted()))


def _packed_manifest() -> bytes:
    listed = {"path": f"runs/demo_topic/{'a' * 32}.json", "bytes": 10, "sha256": "b" * 64}
    return json.dumps(
        {"version": 1, "model": "org/tiny", "biobench": "0.1", "notes": "", "files": [listed]}
    ).encode()


def _table(content: bytes) -> None:
    path = _in_file("t.parquet", content)
    read_index(path)
    from_parquet(content, path)


def _floor(content: bytes) -> None:
    sound = min(STORE.glob("floors/demo_topic/*.json"))
    _in_file(f"store/floors/demo_topic/{sound.name}", content)
    scan_baselines(_folder() / "store")


def _recipe(content: bytes) -> None:
    from trainer.recipe.library import load_recipe

    load_recipe(_in_file("recipe.yaml", content))


def _spec(content: bytes) -> None:
    path = _in_file("task.yaml", content)
    load_yaml_model(path, TaskSpec)
    load_task(str(path))


@lru_cache(maxsize=3)
def _damaged(what: str) -> Damaged:
    from tests.fuzz import corpora

    make = {
        "reader": corpora.of_tasks,
        "text": corpora.of_pretraining,
        "model": corpora.checkpoints,
    }[what]
    return make(_folder() / what)


def _lines() -> tuple[bytes, ...]:
    """Sound predictions for the tasks of `_outside`."""
    answers = [
        {"document": d.id, "labels": list(d.labels)}
        for d in _expected("demo_topic").documents.values()
    ]
    mentions = [
        {"document": d.id, "spans": [s._asdict() for s in d.spans]}
        for d in _expected("demo_ner").documents.values()
    ]
    return tuple(
        "".join(json.dumps(row) + "\n" for row in rows).encode() for rows in (answers, mentions)
    )


@lru_cache(maxsize=2)
def _expected(name: str) -> Expected:
    task = load_task(name)
    data = load_data(task, None)
    return Expected(task.spec.type, data.labels, data.test, Tagging(), redact=False)


def _outside(content: bytes) -> None:
    path = _in_file("predictions.jsonl", content)
    try:
        read_predictions(path, _expected("demo_topic"))
    except DataFormatError:
        read_predictions(path, _expected("demo_ner"))


def _declared(content: bytes) -> None:
    """A study and a plan of comparisons."""
    from biobench.comparison.plan import load_plan
    from biobench.workflows.study import load_study

    path = _in_file("study/study.yaml", content)
    _in_file("study/recipe.yaml", (ROOT / "results/study/recipe.yaml").read_bytes())
    try:
        load_study(path)
    except BioBenchError:
        load_plan(path)


def _config_seeds() -> tuple[bytes, ...]:
    common = {
        "vocab_size": 100,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    kinds = ("bert", "roberta", "modernbert", "deberta-v2", "electra", "distilbert", "t5")
    return tuple(
        json.dumps({"model_type": k, "architectures": [f"{k}Model"], **common}).encode()
        for k in kinds
    )


def _config(content: bytes) -> None:
    from biobench.models.loading import find_checkpoint

    _in_file("model/model.safetensors", b"\x02\0\0\0\0\0\0\0{}")
    find_checkpoint(str(_in_file("model/config.json", content).parent)).identity(1)


def _files(folder: Path, pattern: str, count: int | None = None) -> Callable[[], tuple[bytes, ...]]:
    return lambda: tuple(p.read_bytes() for p in sorted(folder.glob(pattern))[:count])


def _of_corpora(what: str, share: int) -> Target:
    return Target(lambda: _damaged(what).seeds(), lambda content: _damaged(what)(content), share)


def targets() -> dict[str, Target]:
    """By name; nothing is made or imported for one that is not read."""
    return {
        "zip": Target(lambda: (zips.whole(), *(c for _, c in zips.crafted())), _archive("zip"), 14),
        "tar": Target(_tars, _archive("tar"), 9),
        "upload": Target(
            _packs, _unpacked(lambda c, target: unpack_submission(io.BytesIO(c), target)), 9
        ),
        "record": Target(
            _files(STORE, "runs/*/*.json"), lambda c: from_json(c, Path("r.json")), 10
        ),
        "floor": Target(_files(STORE, "floors/demo_topic/*.json", 1), _floor, 5),
        "parquet": Target(_files(STORE, "runs/*/*.parquet"), _table, 8),
        "spec": Target(_files(ROOT / "tasks", "*/*.yaml", 12), _spec, 5),
        "recipe": Target(_files(ROOT / "trainer" / "recipes", "**/*.yaml", 8), _recipe, 5),
        "reader": _of_corpora("reader", 20),
        "text": _of_corpora("text", 4),
        "config": Target(_config_seeds, _config, 2),
        "model": _of_corpora("model", 2),
        "outside": Target(_lines, _outside, 2),
        "manifest": Target(
            lambda: (_packed_manifest(),),
            lambda c: check_manifest(_in_file("pack/submission.json", c).parent),
            2,
        ),
        "study": Target(_files(ROOT / "results" / "study", "[flps]*.yaml"), _declared, 1),
    }
