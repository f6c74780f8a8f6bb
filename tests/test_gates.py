"""What a stranger can bring, and the gate that meets it: the table of docs/reliability.md, walked.

Each row has one attack here, the plainest of its kind; the tests that the table names hold the
others.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.core.checkpoint_safety import check_folder, check_tokenizer
from biobench.data.catalog import load_task
from biobench.data.hub import Repository, named_configurations
from biobench.data.unpack import HEADER_BYTES, unpack
from biobench.errors import BioBenchError
from biobench.schema.source import HubSource
from biobench.schema.strict import load_yaml_model
from biobench.schema.suite import SuiteSpec
from biobench.schema.tags import Tagging
from biobench.score.external import Expected, read_predictions
from biobench.store import Store
from biobench.store.statements import statement_on
from biobench.submission.layout import check_layout
from biobench.submission.names import is_plain_name
from biobench.submission.repository import pull
from biobench.submission.unpack import unpack as unpack_upload
from leaderboard.page import literal
from trainer.recipe.library import load_recipe

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reliability.md"


def checkpoint(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../a.bin"}}')
    check_folder(folder)


def adapter(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    (folder / "adapter_config.json").write_text("{}")
    check_folder(folder)


def tokenizer(folder: Path) -> None:
    os.mkfifo(folder / "tokenizer.json")
    check_tokenizer(folder)


def spec(folder: Path) -> None:
    os.mkfifo(folder / "task.yaml")
    load_task(folder / "task.yaml")


def data_set(folder: Path) -> None:
    configs = "configs: [{config_name: a, data_files: /etc/passwd}]"
    (folder / "README.md").write_text(f"---\n{configs}\n---\n")
    source = HubSource(repo="org/x", revision="main")
    named_configurations(Repository(source, "0" * 40, {}), folder)


def recipe(folder: Path) -> None:
    (folder / "recipe.yaml").write_text("extends: ../../other\n")
    load_recipe(folder / "recipe.yaml")


def plan(folder: Path) -> None:
    (folder / "suite.yaml").write_text("id: own\ntasks: [/etc/task.yaml]\n")
    load_yaml_model(folder / "suite.yaml", SuiteSpec)


def archive(folder: Path) -> None:
    info = tarfile.TarInfo("long")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, HEADER_BYTES + 1
    (folder / "a.tar").write_bytes(info.tobuf() + bytes(2 * HEADER_BYTES))
    unpack(folder / "a.tar", "tar", folder / "out")


def record(folder: Path) -> None:
    path = folder / "runs" / "demo_topic" / f"{'0' * 32}.json"
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    Store(folder).get("demo_topic", "0" * 32)


def predictions(folder: Path) -> None:
    (folder / "p.jsonl").write_text('{"document": "x", "labels": ["A"]}\n')
    expected = Expected("single_label", ["A"], [], Tagging(), redact=True)
    read_predictions(folder / "p.jsonl", expected)


def statement(folder: Path) -> None:
    pack = folder / "submitted" / "mine"
    pack.mkdir(parents=True)
    (pack / "submission.json").write_text("{}")
    (folder / "statements").mkdir()
    (folder / "statements" / "mine.json").write_text("[" * 100_000)
    statement_on(pack, folder)


def repository(folder: Path) -> None:
    pull("ext::sh -c id", folder)


def submission(folder: Path) -> None:
    (folder / "runs").symlink_to("/etc")
    refuse([check.code for check in check_layout(folder)])


def upload(folder: Path) -> None:
    refuse([check.code for check in unpack_upload(io.BytesIO(b"PK\1\2" * 10**4), folder / "x")[1]])


def address(folder: Path) -> None:
    refuse([] if "://evil" in literal("https://evil.example") else ["broken"])


def name(folder: Path) -> None:
    refuse([] if is_plain_name("оrg/tiny") else ["refused"])


def refuse(codes: list[str]) -> None:
    """Raise where something was refused."""
    if codes:
        raise BioBenchError(", ".join(codes), hint="")


ATTACKS: dict[str, Callable[[Path], None]] = {
    "checkpoint": checkpoint,
    "adapter": adapter,
    "tokenizer": tokenizer,
    "archive": archive,
    "data set of the hub": data_set,
    "spec": spec,
    "recipe": recipe,
    "suite, study": plan,
    "record": record,
    "predictions": predictions,
    "statement": statement,
    "repository": repository,
    "submission": submission,
    "upload": upload,
    "address": address,
    "name": name,
}


def rows() -> list[tuple[str, str]]:
    """What a stranger can bring, and the cell with its tests, of the table."""
    page = PAGE.read_text(encoding="utf-8")
    section = page.split("## What strangers bring\n")[1].split("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if "|" in line][2:]
    return [(cells[0], cells[-1]) for cells in lines]


def test_the_table_names_every_attack_and_tests_that_exist() -> None:
    assert {brought for brought, _ in rows()} == set(ATTACKS)
    for _, tests in rows():
        files = re.findall(r"`(tests/[a-z_/]+\.py)`", tests)
        assert files
        assert all((PAGE.parents[1] / file).is_file() for file in files)


@pytest.mark.parametrize("brought", ATTACKS)
def test_the_plainest_attack_is_refused_in_one_line(brought: str, tmp_path: Path) -> None:
    folder = tmp_path / "brought"
    folder.mkdir()
    with pytest.raises(BioBenchError) as caught:
        ATTACKS[brought](folder)
    assert "\n" not in str(caught.value)
    shutil.rmtree(folder)
