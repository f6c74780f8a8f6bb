"""Fetching from a server of our own: resume, hashes, ranges, hub files, and the state of data."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.download import download
from biobench.data.fetch import fetch
from biobench.data.load import load_data
from biobench.data.status import status
from biobench.errors import DataFormatError, DataUnavailableError, UsageError
from tests.helpers.fetch_make import GOOD, Server, left_behind, parts, refused, zipped


def test_plain_files_are_put_in_place_and_load(
    server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    urls = [server.put(f"x/{n}.tsv", GOOD.encode()) for n in ("train", "devel", "test")]
    task = task_at("[" + ", ".join(f'{{url: "{u}"}}' for u in urls) + "]")
    data = tmp_path / "store"
    seen: list[tuple[str, int, int | None]] = []
    result = fetch(task, data, progress=lambda *a: seen.append(a))
    assert sorted(Path(f).name for f in result.files) == ["devel.tsv", "test.tsv", "train.tsv"]
    assert seen[-1][1] == seen[-1][2] == len(GOOD)
    assert len(load_data(task, data).train) == 1
    asked = len(server.asked)
    assert fetch(task, data).notes == ["already at hand"]
    assert len(server.asked) == asked


def test_a_zip_with_a_subfolder_and_resource_forks(
    server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    content = {f"top/in/{n}.tsv": GOOD.encode() for n in ("train", "devel", "test")}
    archive = zipped(content | {"__MACOSX/top/in/._train.tsv": b"x", "top/in/._test.tsv": b"x", "top/other.txt": b"x"})
    sha = hashlib.sha256(archive).hexdigest()
    url = server.put("c.zip", archive)
    task = task_at(f'{{url: "{url}", sha256: {sha}, unpack: zip, subfolder: top/in}}')
    data = tmp_path / "store"
    fetch(task, data)
    assert left_behind(data) == ["corpus/devel.tsv", "corpus/test.tsv", "corpus/train.tsv"]
    assert load_data(task, data).source == "local"


CONTENT = os.urandom(300_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that downloads waited, without waiting."""
    seen: list[float] = []
    monkeypatch.setattr("biobench.data.download.time.sleep", seen.append)
    return seen


def test_a_broken_download_is_continued_where_a_hash_guards_it(
    server: Server, waits: list[float], tmp_path: Path
) -> None:
    url = server.put("big.bin", CONTENT)
    server.cut["/big.bin"] = [100_000, 0, 0]
    with pytest.raises(DataUnavailableError, match="cut off: 100000 of 300000 bytes"):
        download(url, tmp_path / "d" / "big.bin", DIGEST)
    assert not (tmp_path / "d" / "big.bin").exists()
    assert download(url, tmp_path / "d" / "big.bin", DIGEST).read_bytes() == CONTENT
    assert [wanted for _, wanted in server.asked] == [None, *["bytes=100000-"] * 3]
    assert not parts(tmp_path)
    server.cut["/big.bin"] = [100_000]
    assert download(url, tmp_path / "other.bin").read_bytes() == CONTENT
    assert [wanted for _, wanted in server.asked[-2:]] == [None, None], "another version would go unseen"


@pytest.mark.parametrize("fault", ["no ranges", "shifted", "longer", "another version"])
def test_a_part_that_does_not_fit_is_not_joined(fault: str, server: Server, waits: list[float], tmp_path: Path) -> None:
    url = server.put("big.bin", CONTENT)
    server.ranges, server.shift = fault != "no ranges", 8 * (fault == "shifted")
    (tmp_path / "big.bin.part").write_bytes(CONTENT[:1000] + b"x" * (400_000 if fault == "longer" else 0))
    if fault == "another version":
        (tmp_path / "big.bin.part").write_bytes(b"x" * 1000)
        with pytest.raises(DataUnavailableError, match="the SHA-256 is"):
            download(url, tmp_path / "big.bin", DIGEST)
    assert download(url, tmp_path / "big.bin", DIGEST).read_bytes() == CONTENT
    assert [p.name for p in tmp_path.iterdir()] == ["big.bin"]


def test_a_busy_server_is_asked_three_times_and_a_closed_one_once(
    server: Server, waits: list[float], tmp_path: Path
) -> None:
    url = server.put("big.bin", CONTENT)
    server.busy = [429, 503]
    assert download(url, tmp_path / "big.bin").read_bytes() == CONTENT
    assert waits == [1, 2]
    server.busy = [503, 503, 503]
    with pytest.raises(DataUnavailableError, match="answers 503 Service Unavailable"):
        download(url, tmp_path / "other.bin")
    server.busy, server.asked = [403], []
    with pytest.raises(DataUnavailableError, match="answers 403 Forbidden"):
        download(url, tmp_path / "other.bin")
    assert len(server.asked) == 1


def test_wrong_hash_missing_file_and_missing_member(
    server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    data = tmp_path / "store"
    archive = zipped({"train.tsv": GOOD.encode()})
    url = server.put("c.zip", archive)
    task = task_at(f'{{url: "{url}", sha256: "{"0" * 64}", unpack: zip}}')
    refused(task, data, "the SHA-256 is", DataUnavailableError)
    refused(task_at(f'{{url: "{url}x", unpack: zip}}'), data, "404", DataUnavailableError)
    refused(task_at(f'{{url: "{url}", unpack: zip, subfolder: other}}'), data, "nothing below 'other'", DataFormatError)
    with pytest.raises(DataFormatError, match=r"'devel\.tsv' is not among"):
        fetch(task_at(f'{{url: "{url}", unpack: zip}}'), data)


@pytest.mark.parametrize("place", ["all.txt", "gone.txt"])
def test_the_original_release_goes_into_its_own_folder(
    place: str, server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    urls = [server.put(f"{name}.tsv", GOOD.encode()) for name in NAMES]
    original = server.put("all.txt", b"x").replace("all.txt", place)
    files = "{train: all.txt, validation: all.txt, test: all.txt}"
    release = f"\n  original: {{folder: release, files: {files}, url: {original}}}"
    listed = ", ".join(f'{{url: "{url}"}}' for url in urls)
    task = task_at(f"[{listed}]{release}", reader="{format: projected, original: pubtator, take: ids}")
    data = tmp_path / "store"
    if place == "gone.txt":
        with pytest.raises(DataUnavailableError, match="404"):
            fetch(task, data)
        assert not (data / "release").exists()
    else:
        fetch(task, data)
        assert left_behind(data) == [*(f"corpus/{n}.tsv" for n in sorted(NAMES)), "release/all.txt"]


def test_agreement_tasks_give_their_steps_and_ask_nobody(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailableError) as caught:
        fetch(load_task("deid"), tmp_path)
    assert caught.value.access == "agreement"
    for word in ("(1)", "physionet.org", "id.text, id.res", str(tmp_path / "deid"), "biobench tasks validate deid"):
        assert word in caught.value.hint
    state = status(load_task("phenotype"), tmp_path)
    assert state.state == "agreement"
    assert any("CITI" in step for step in state.steps)
    assert any("ACTdb102003.csv, NOTEEVENTS.csv*" in step for step in state.steps)


def test_status_of_ready_missing_and_generated(tmp_path: Path, fixtures: Path) -> None:
    states = {n: status(load_task(n), tmp_path) for n in ("gad", "demo_ner", "cantemist", "diamed")}
    assert states["demo_ner"].state == "generated"
    assert states["gad"].state == "missing"
    assert states["gad"].fetch[0].startswith("https://")
    assert "biobench data fetch gad" in states["gad"].steps[0]
    assert states["cantemist"].fetch == []
    assert any("FRASIMED" in step for step in states["cantemist"].steps)
    folder = tmp_path / "gad_blurb"
    folder.mkdir()
    for name in ("train", "dev", "test"):
        (folder / f"{name}.tsv").write_text("x")
    ready = status(load_task("gad"), tmp_path)
    assert (ready.state, ready.source, ready.files, ready.bytes) == ("ready", "blurb", 3, 3)


def test_an_unknown_source(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no source 'blurp'") as caught:
        fetch(load_task("gad"), tmp_path, "blurp")
    assert "blurb" in caught.value.hint


def test_of_a_large_zip_on_the_hub_the_members_alone_are_read(
    task_at: Callable[..., LoadedTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    archive = zipped({"huge.png": os.urandom(1000)} | {f"splits/{n}.tsv": GOOD.encode() for n in NAMES})

    def opened(self: object, path: str, mode: str) -> io.BytesIO:
        assert path == "datasets/org/name@main/data.zip"
        return io.BytesIO(archive)

    monkeypatch.setattr(huggingface_hub.HfFileSystem, "open", opened)
    members = ", ".join(f"splits/{n}.tsv" for n in NAMES)
    task = task_at(
        f"{{url: 'https://huggingface.co/datasets/org/name/resolve/main/data.zip', unpack: zip, members: [{members}]}}",
        files="{train: splits/train.tsv, validation: splits/devel.tsv, test: splits/test.tsv}",
    )
    fetch(task, tmp_path / "store")
    assert left_behind(tmp_path / "store") == [f"corpus/splits/{n}.tsv" for n in sorted(NAMES)]


NAMES = ("train", "devel", "test")
