"""Fetching from a server of our own: resume, hashes, ranges, and archives that must be refused."""

from __future__ import annotations

import errno
import hashlib
import http.server
import io
import os
import re
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.desk import fetch, status
from biobench.data.desk.download import download
from biobench.data.desk.fetch import WORK
from biobench.data.desk.unpack import Limits, unpack
from biobench.data.load import load_data
from biobench.errors import BioBenchError, DataFormatError, DataUnavailableError, UsageError

FILES = "{train: train.tsv, validation: devel.tsv, test: test.tsv}"
GOOD = "Mild\tO\nasthma\tB-Disease\n\n"


class Server:
    """Serves byte strings; can cut a reply short, and can refuse ranges."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: dict[str, list[int]] = {}
        self.ranges = True
        self.asked: list[tuple[str, str | None]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted = self.headers.get("Range")
                outer.asked.append((self.path, wanted))
                content = outer.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                match = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "") if outer.ranges else None
                first, last = 0, len(content) - 1
                if match:
                    first = int(match[1])
                    last = int(match[2]) if match[2] else last
                    if first >= len(content):
                        self.send_error(416)
                        return
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
                else:
                    self.send_response(200)
                body = content[first : last + 1]
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                cuts = outer.cut.get(self.path)
                self.wfile.write(body[: cuts.pop(0)] if cuts else body)
                self.close_connection = True

            def log_message(self, *args: Any) -> None:
                return

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def put(self, name: str, content: bytes) -> str:
        self.files[f"/{name}"] = content
        return f"http://127.0.0.1:{self.http.server_port}/{name}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


def zipped(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        for name, target in (links or {}).items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o120777 << 16
            archive.writestr(info, target)
    return buffer.getvalue()


def tarred(entries: list[tuple[str, bytes | None, bytes]]) -> bytes:
    """(name, content or None, type) to a tar.gz."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content, kind in entries:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.size = len(content or b"")
            if content is None:
                info.linkname = "/etc/passwd"
            archive.addfile(info, io.BytesIO(content) if content is not None else None)
    return buffer.getvalue()


@pytest.fixture
def task_at(make_task: Callable[..., LoadedTask]) -> Callable[..., LoadedTask]:
    """A token task whose source has the given `url:` value."""

    def make(url: str, folder: str = "corpus", files: str = FILES, **more: str) -> LoadedTask:
        return make_task(
            type="token_ner",
            folder=folder,
            labels="[Disease]",
            files=f"{files}\n  url: {url}",
            reader="{format: iob}",
            **more,
        )

    return make


def left_behind(data: Path) -> list[str]:
    """What stands below the data folder apart from the cache of whole downloads and the lock."""
    return sorted(
        p.relative_to(data).as_posix()
        for p in data.rglob("*")
        if p.is_file() and p.name != "fetch.lock" and "downloads" not in p.parts
    )


def parts(data: Path) -> list[Path]:
    return list(data.rglob("*.part"))


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


def test_the_download_cache_is_shared(server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path) -> None:
    archive = zipped({f"{n}.tsv": GOOD.encode() for n in ("train", "devel", "test")})
    url = server.put("c.zip", archive)
    data = tmp_path / "store"
    fetch(task_at(f'{{url: "{url}", unpack: zip}}'), data)
    fetch(task_at(f'{{url: "{url}", unpack: zip}}', folder="second", id="other"), data)
    assert [path for path, _ in server.asked] == ["/c.zip"]


def test_a_broken_download_is_continued(server: Server, tmp_path: Path) -> None:
    content = os.urandom(300_000)
    url = server.put("big.bin", content)
    server.cut["/big.bin"] = [100_000]
    target = download(url, tmp_path / "d" / "big.bin", hashlib.sha256(content).hexdigest())
    assert target.read_bytes() == content
    assert [wanted for _, wanted in server.asked] == [None, "bytes=100000-"]
    assert not parts(tmp_path)


def test_a_download_that_stays_cut_off_says_so_and_is_continued_later(server: Server, tmp_path: Path) -> None:
    content = os.urandom(5000)
    url = server.put("big.bin", content)
    server.cut["/big.bin"] = [1000, 0, 0]
    with pytest.raises(DataUnavailableError, match="cut off: 1000 of 5000 bytes"):
        download(url, tmp_path / "big.bin")
    assert not (tmp_path / "big.bin").exists()
    assert download(url, tmp_path / "big.bin").read_bytes() == content
    assert server.asked[-1][1] == "bytes=1000-"


def test_a_server_without_ranges_starts_again(server: Server, tmp_path: Path) -> None:
    content = os.urandom(5000)
    url = server.put("big.bin", content)
    server.ranges = False
    server.cut["/big.bin"] = [1000]
    assert download(url, tmp_path / "big.bin").read_bytes() == content


def test_members_of_a_large_zip_are_read_by_ranges(
    server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    content = {"figures/huge.png": os.urandom(2_000_000)} | {
        f"splits/{n}.tsv": GOOD.encode() for n in ("train", "devel", "test")
    }
    archive = zipped(content)
    url = server.put("data.zip", archive)
    task = task_at(
        f'{{url: "{url}", unpack: zip, members: [splits/train.tsv, splits/devel.tsv, splits/test.tsv]}}',
        files="{train: splits/train.tsv, validation: splits/devel.tsv, test: splits/test.tsv}",
    )
    result = fetch(task, tmp_path / "store")
    assert "read by ranges" in result.notes[0]
    assert int(result.notes[0].split()[0]) < len(archive) / 2
    assert all(wanted is not None for _, wanted in server.asked)
    server.ranges = False
    whole = fetch(task_at(task_url(task), folder="again", files=task_files(task), id="again"), tmp_path / "store")
    assert not whole.notes
    assert left_behind(tmp_path / "store")[0] == "again/splits/devel.tsv"


def task_url(task: LoadedTask) -> str:
    url = task.spec.all_sources[0].url
    assert url is not None
    assert not isinstance(url, (str, list))
    return f'{{url: "{url.url}", unpack: zip, members: [{", ".join(url.members)}]}}'


def task_files(task: LoadedTask) -> str:
    return str(task.spec.all_sources[0].files).replace("'", "")


def refused(task: LoadedTask, data: Path, words: str, kind: type[BioBenchError]) -> BioBenchError:
    with pytest.raises(kind, match=words) as caught:
        fetch(task, data)
    assert "\n" not in str(caught.value) + caught.value.hint
    assert left_behind(data) == []
    assert not parts(data)
    return caught.value


@pytest.mark.parametrize("name", ["../evil.tsv", "/etc/evil.tsv", "a/../../evil.tsv", "C:/evil.tsv", "..\\evil.tsv"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_escaping_members_are_refused(
    name: str, kind: str, server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    good = {f"{n}.tsv": GOOD.encode() for n in ("train", "devel", "test")}
    if kind == "zip":
        archive = zipped(good | {name: b"evil"})
    else:
        archive = tarred([(n, c, tarfile.REGTYPE) for n, c in (good | {name: b"evil"}).items()])
    url = server.put(f"c.{kind}", archive)
    task = task_at(f'{{url: "{url}", unpack: {kind}}}')
    refused(task, tmp_path / "a" / "store", "outside the folder", DataFormatError)
    assert not list(tmp_path.rglob("evil*"))


def test_links_devices_and_encrypted_members_are_refused(
    server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    cases = {
        "zip": zipped({"train.tsv": b"x"}, {"devel.tsv": "/etc/passwd"}),
        "tar": tarred([("train.tsv", b"x", tarfile.REGTYPE), ("devel.tsv", None, tarfile.SYMTYPE)]),
        "tar.gz": tarred([("pipe", None, tarfile.FIFOTYPE)]),
    }
    for name, archive in cases.items():
        url = server.put(f"c.{name}", archive)
        task = task_at(f'{{url: "{url}", unpack: {name[:3]}}}')
        refused(task, tmp_path / "store", "is a link", DataFormatError)
    locked = bytearray(zipped({"train.tsv": b"x"}))
    for marker, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(marker) + at] |= 1
    url = server.put("locked.zip", bytes(locked))
    refused(task_at(f'{{url: "{url}", unpack: zip}}'), tmp_path / "store", "encrypted", DataFormatError)


def test_bombs_are_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    bomb.write_bytes(zipped({"a.txt": b"0" * 3_000_000}))
    with pytest.raises(DataFormatError, match="more than is allowed"):
        unpack(bomb, "zip", tmp_path / "out", limits=Limits(bytes=1_000_000))
    with pytest.raises(DataFormatError, match="more than is allowed"):
        unpack(bomb, "zip", tmp_path / "out", limits=Limits(ratio_from=1000))
    many = tmp_path / "many.zip"
    many.write_bytes(zipped({f"{i}.txt": b"x" for i in range(20)}))
    with pytest.raises(DataFormatError, match="more than 10 files"):
        unpack(many, "zip", tmp_path / "out", limits=Limits(files=10))
    assert not (tmp_path / "out").exists()


def test_damaged_archives(server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path) -> None:
    good = zipped({f"{n}.tsv": os.urandom(3000) for n in ("train", "devel", "test")})
    flipped = bytearray(good)
    flipped[2000] ^= 0xFF
    whole_tar = tarred([("train.tsv", os.urandom(50_000), tarfile.REGTYPE)])
    for name, archive in (
        ("half.zip", good[: len(good) // 2]),
        ("flipped.zip", bytes(flipped)),
        ("text.zip", b"<html>not found</html>"),
        ("half.tar", whole_tar[: len(whole_tar) // 2]),
    ):
        url = server.put(name, archive)
        refused(task_at(f'{{url: "{url}", unpack: {name[-3:]}}}'), tmp_path / "store", "damaged", DataFormatError)


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


def test_a_full_disk_leaves_nothing(
    server: Server, task_at: Callable[..., LoadedTask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.put("c.zip", zipped({"train.tsv": GOOD.encode()}))
    task = task_at(f'{{url: "{url}", unpack: zip}}')
    real = Path.open

    def full(self: Path, mode: str = "r", *args: Any, **more: Any) -> Any:
        if self.name.endswith((".part", ".tsv")) and ("w" in mode or "a" in mode):
            raise OSError(errno.ENOSPC, "No space left on device", str(self))
        return real(self, mode, *args, **more)

    monkeypatch.setattr(Path, "open", full)
    refused(task, tmp_path / "one", "the disk of .* is full", DataUnavailableError)
    monkeypatch.undo()
    fetched_first = download(
        url, tmp_path / "two" / WORK / "downloads" / hashlib.sha256(url.encode()).hexdigest()[:16] / "c.zip"
    )
    assert fetched_first.is_file()
    monkeypatch.setattr(Path, "open", full)
    refused(task, tmp_path / "two", "the disk of .* is full", DataUnavailableError)


def test_a_host_that_is_not_there(task_at: Callable[..., LoadedTask], tmp_path: Path) -> None:
    task = task_at('{url: "http://127.0.0.1:9/c.zip", unpack: zip}')
    refused(task, tmp_path / "store", "cannot be reached", DataUnavailableError)


def test_agreement_tasks_give_their_steps_and_ask_nobody(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailableError) as caught:
        fetch(load_task("deid"), tmp_path)
    assert caught.value.access == "agreement"
    for word in ("(1)", "physionet.org", "id.text, id.res", str(tmp_path / "deid"), "biobench tasks validate deid"):
        assert word in caught.value.hint
    (state,) = status([load_task("phenotype")], tmp_path)
    assert state.state == "agreement"
    assert any("CITI" in step for step in state.steps)
    assert any("ACTdb102003.csv, NOTEEVENTS.csv*" in step for step in state.steps)


def test_status_of_ready_missing_and_generated(tmp_path: Path, fixtures: Path) -> None:
    states = {s.task: s for s in status([load_task(n) for n in ("gad", "demo_ner", "cantemist", "diamed")], tmp_path)}
    assert states["demo_ner"].state == "generated"
    assert states["gad"].state == "missing"
    assert states["gad"].fetch[0].startswith("https://")
    assert "biobench data fetch gad" in states["gad"].steps[0]
    assert states["gad"].lacking == [str(tmp_path / "gad_10fold/1/train.tsv"), str(tmp_path / "gad_10fold/1/test.tsv")]
    assert states["cantemist"].fetch == []
    assert any("FRASIMED" in step for step in states["cantemist"].steps)
    folder = tmp_path / "gad_blurb"
    folder.mkdir()
    for name in ("train", "dev", "test"):
        (folder / f"{name}.tsv").write_text("x")
    (ready,) = status([load_task("gad")], tmp_path)
    assert (ready.state, ready.source, ready.files, ready.bytes) == ("ready", "blurb", 3, 3)
    assert ready.hash is not None
    (folder / "dev.tsv").write_text("y")
    assert status([load_task("gad")], tmp_path)[0].hash != ready.hash


def test_an_unknown_source(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no source 'blurp'") as caught:
        fetch(load_task("gad"), tmp_path, "blurp")
    assert "blurb" in caught.value.hint


def test_hub_files_are_taken_by_name_and_scripts_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    import pyarrow as pa
    import pyarrow.parquet as pq

    remote = tmp_path / "remote.parquet"
    pq.write_table(pa.table({"document_id": ["1"], "text": ["a @GENE$"], "labels": [["1"]]}), remote)
    asked: list[str] = []

    def listed(self: object, repo: str, *, revision: str, repo_type: str) -> list[str]:
        assert (repo, revision, repo_type) == ("bigbio/gad", "refs/convert/parquet", "dataset")
        splits = [f"gad_blurb_bigbio_text/{s}/0000.parquet" for s in ("train", "validation", "test")]
        return ["gad.py", "README.md", "gad_fold0_source/train/0000.parquet", *splits]

    def got(repo: str, name: str, *, revision: str, repo_type: str) -> str:
        asked.append(name)
        return str(remote)

    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", listed)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", got)
    task = load_task("gad")
    data = tmp_path / "store"
    assert len(fetch(task, data, "hub").files) == 3
    assert all(name.startswith("gad_blurb_bigbio_text/") for name in asked)
    assert left_behind(data) == [f"hub_gad/{s}/0000.parquet" for s in ("test", "train", "validation")]
    with pytest.raises(DataFormatError, match="stands twice"):
        load_data(task, data)  # the three files are one and the same here

    def broken(self: object, repo: str, *, revision: str, repo_type: str) -> list[str]:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", broken)
    with pytest.raises(DataUnavailableError, match="no route to host"):
        fetch(task, tmp_path / "other", "hub")
