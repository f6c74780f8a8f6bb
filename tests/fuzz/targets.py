"""What is fuzzed: sound input to start from, and the function that must read it or refuse it by one of our errors."""

from __future__ import annotations

import atexit
import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from biobench.data.catalog import load_task
from biobench.data.desk.unpack import Limits, unpack
from biobench.data.load import load_data
from biobench.schema.strict import load_yaml_model
from biobench.schema.task import TaskSpec
from biobench.store.floors import scan_floors
from biobench.store.index import read_index
from biobench.store.records import from_json
from biobench.store.tables import from_parquet
from biobench.submission.content import check_content
from biobench.submission.unpack import unpack as unpack_submission
from tests.fuzz import zips

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "tests" / "fixtures" / "stores" / "record-1"
LIMITS = Limits(bytes=1 << 24, files=1_000, ratio_from=1 << 20)


@dataclass(frozen=True)
class Target:
    """seeds: sound input. read: raises nothing but errors of the project. share: inputs of a hundred."""

    seeds: tuple[bytes, ...]
    read: Callable[[bytes], object]
    share: int


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


def _archive(kind: str) -> Callable[[bytes], object]:
    def read(content: bytes) -> None:
        target = _folder() / "out"
        try:
            unpack(_in_file(f"a.{kind}", content), kind, target, limits=LIMITS)
        finally:
            shutil.rmtree(target, ignore_errors=True)

    return read


def _upload(content: bytes) -> None:
    target = _folder() / "upload"
    target.mkdir()
    try:
        unpack_submission(io.BytesIO(content), target)
    finally:
        shutil.rmtree(target, ignore_errors=True)


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
    record, table = (sorted(STORE.glob(f"runs/*/*.{s}"))[0].read_bytes() for s in ("json", "parquet"))
    names = ("submission.json", f"runs/demo_topic/{'a' * 32}.json", f"runs/demo_topic/{'a' * 32}.parquet")
    held = io.BytesIO()
    with zips.zipfile.ZipFile(held, "w", zips.zipfile.ZIP_DEFLATED) as archive:
        for name, content in zip(names, (b"{}", record, table), strict=True):
            archive.writestr(name, content)
    return (held.getvalue(), *(content for _, content in zips.crafted()))


def _table(content: bytes) -> None:
    path = _in_file("t.parquet", content)
    record = from_json(sorted(STORE.glob("runs/demo_topic/*.json"))[0].read_bytes(), path)
    if not check_content(path, "t", record):
        from_parquet(content, path)
    read_index(path)


def _floor(content: bytes) -> None:
    sound = sorted(STORE.glob("floors/demo_topic/*.json"))[0]
    _in_file(f"store/floors/demo_topic/{sound.name}", content)
    scan_floors(_folder() / "store")


def _recipe(content: bytes) -> None:
    from trainer.recipe.spec import Recipe

    load_yaml_model(_in_file("recipe.yaml", content), Recipe)


def _spec(content: bytes) -> None:
    path = _in_file("task.yaml", content)
    load_yaml_model(path, TaskSpec)
    load_task(str(path))


@lru_cache(maxsize=1)
def _corpora() -> list[tuple[Any, Path, Path]]:
    """(task, data folder, file) for every file that is damaged in turn."""
    from functools import partial

    from tests.helpers.generators import GENERATORS, cos, deid, phenotype

    small = GENERATORS | {
        "cos": partial(cos, snippets=60, duplicates=3),
        "deid": partial(deid, records=60),
        "phenotype": partial(phenotype, notes=20),
    }
    found = []
    for name in ("meddialog_fr", "diamed", "phenotype", "cos", "deid", "jnlpba", "chemprot"):
        data = _folder() / "data" / name
        small[name](data)
        task = load_task(name)
        load_data(task, data)
        files = sorted((p for p in data.rglob("*") if p.is_file()), key=lambda p: -p.stat().st_size)
        found += [(task, data, path) for path in files[:4]]
    return found


def _corpus_seeds() -> tuple[bytes, ...]:
    return tuple(bytes([i]) + path.read_bytes() for i, (_, _, path) in enumerate(_corpora()))


def _corpus(content: bytes) -> None:
    """The first byte says which file of which corpus the rest becomes."""
    if not content:
        return
    task, data, path = _corpora()[content[0] % len(_corpora())]
    kept = path.read_bytes()
    path.write_bytes(content[1:])
    try:
        load_data(task, data)
    finally:
        path.write_bytes(kept)


def _config_seeds() -> tuple[bytes, ...]:
    common = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    kinds = ("bert", "roberta", "modernbert", "deberta-v2", "electra", "distilbert", "t5")
    return tuple(json.dumps({"model_type": k, "architectures": [f"{k}Model"], **common}).encode() for k in kinds)


def _config(content: bytes) -> None:
    from biobench.models.loading import find_checkpoint

    _in_file("model/model.safetensors", b"\x02\0\0\0\0\0\0\0{}")
    find_checkpoint(str(_in_file("model/config.json", content).parent)).identity(1)


def targets() -> dict[str, Target]:
    """By name."""
    specs = sorted((ROOT / "tasks").glob("*/*.yaml"))
    recipes = sorted((ROOT / "trainer" / "recipes").glob("**/*.yaml"))
    records = sorted(STORE.glob("runs/*/*.json"))
    return {
        "zip": Target((zips.whole(), *(c for _, c in zips.crafted())), _archive("zip"), 25),
        "tar": Target(_tars(), _archive("tar"), 15),
        "upload": Target(_packs(), _upload, 15),
        "record": Target(tuple(p.read_bytes() for p in records), lambda c: from_json(c, Path("r.json")), 15),
        "floor": Target((sorted(STORE.glob("floors/demo_topic/*.json"))[0].read_bytes(),), _floor, 5),
        "parquet": Target(tuple(p.with_suffix(".parquet").read_bytes() for p in records), _table, 10),
        "spec": Target(tuple(p.read_bytes() for p in specs[:12]), _spec, 5),
        "recipe": Target(tuple(p.read_bytes() for p in recipes[:8]), _recipe, 5),
        "reader": Target(_corpus_seeds(), _corpus, 3),
        "config": Target(_config_seeds(), _config, 2),
    }
