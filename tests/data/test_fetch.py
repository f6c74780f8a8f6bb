"""Fetching from a server of our own: resume, hashes, ranges, hub files, the state of data, and
refused archives.
"""

import gzip
import hashlib
import io
import os
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.download import download
from biobench.data.fetch import fetch
from biobench.data.load import load_data
from biobench.data.status import status
from biobench.data.unpack import unpack
from biobench.errors import DataFormatError, DataUnavailableError, UsageError
from tests.helpers.fetch_make import GOOD, Server, left_behind, parts, refused, tarred, zipped

NAMES = ("train", "devel", "test")
FILES = {f"{name}.tsv": GOOD.encode() for name in NAMES}
Make = Callable[..., LoadedTask]


@pytest.fixture
def packed(server: Server, task_at: Make) -> Make:
    """A task whose source is this archive, of which its name says the kind."""

    def make(name: str, archive: bytes, more: str = "") -> LoadedTask:
        kind = name.split(".")[1]
        return task_at(f'{{url: "{server.put(name, archive)}", unpack: {kind}{more}}}')

    return make


def test_plain_files_are_put_in_place_and_load(server, task_at, tmp_path):
    urls = [server.put(f"x/{name}", content) for name, content in FILES.items()]
    task = task_at("[" + ", ".join(f'{{url: "{u}"}}' for u in urls) + "]")
    data = tmp_path / "store"
    seen: list[tuple[str, int, int | None]] = []
    result = fetch(task, data, progress=lambda *a: seen.append(a))
    assert sorted(Path(f).name for f in result.files) == ["devel.tsv", "test.tsv", "train.tsv"]
    assert seen[-1][1] == seen[-1][2] == len(GOOD)
    assert len(load_data(task, data).train) == 1
    keys = {hashlib.sha256(url.encode()).hexdigest()[:16] for url in urls}
    assert {p.parent.name for p in data.rglob("downloads/*/*")} == keys
    server.forget()
    killed = data / ".biobench" / "unpack-killed"  # right after its last file had been put in place
    killed.mkdir()
    assert fetch(task, data).notes == ["already available"]
    assert not server.seen
    assert not killed.exists()


def test_a_zip_with_a_subfolder_and_resource_forks(packed, tmp_path):
    content = {f"top/in/{name}": text for name, text in FILES.items()}
    beside = ("__MACOSX/top/in/._train.tsv", "top/in/._test.tsv", "top/other.txt")
    archive = zipped(content | dict.fromkeys(beside, b"x"))
    sha = hashlib.sha256(archive).hexdigest()
    task = packed("c.zip", archive, f", sha256: {sha}, subfolder: top/in")
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


def test_a_broken_download_is_continued_where_a_hash_guards_it(server, waits, tmp_path):
    url = server.put("big.bin", CONTENT)
    for sent in (100_000, 0, 0):
        server.fault("big.bin", "cut", sent)
    with pytest.raises(DataUnavailableError, match="cut off: 100000 of 300000 bytes"):
        download(url, tmp_path / "d" / "big.bin", DIGEST)
    assert not (tmp_path / "d" / "big.bin").exists()
    assert download(url, tmp_path / "d" / "big.bin", DIGEST).read_bytes() == CONTENT
    assert [request.range for request in server.seen] == [None, *["bytes=100000-"] * 3]
    assert not parts(tmp_path)
    server.fault("big.bin", "cut", 100_000)
    assert download(url, tmp_path / "other.bin").read_bytes() == CONTENT
    assert [request.range for request in server.seen[-2:]] == [None, None], (
        "another version would go unseen"
    )


@pytest.mark.parametrize("fault", ["no ranges", "shifted", "longer", "another version"])
def test_a_part_that_does_not_fit_is_not_joined(fault, server, waits, tmp_path):
    url = server.put("big.bin", CONTENT)
    if fault in ("no ranges", "shifted"):
        server.fault("big.bin", "whole" if fault == "no ranges" else "shift", 8, times=-1)
    (tmp_path / "big.bin.part").write_bytes(
        CONTENT[:1000] + b"x" * (400_000 if fault == "longer" else 0)
    )
    if fault == "another version":
        (tmp_path / "big.bin.part").write_bytes(b"x" * 1000)
        with pytest.raises(DataUnavailableError, match="the SHA-256 is"):
            download(url, tmp_path / "big.bin", DIGEST)
    assert download(url, tmp_path / "big.bin", DIGEST).read_bytes() == CONTENT
    assert [p.name for p in tmp_path.iterdir()] == ["big.bin"]


def test_a_busy_server_is_asked_three_times_and_a_closed_one_once(server, waits, tmp_path):
    url = server.put("big.bin", CONTENT)
    for answer in (429, 503):
        server.fault("big.bin", "status", answer)
    assert download(url, tmp_path / "big.bin").read_bytes() == CONTENT
    assert waits == [1, 2]
    server.fault("big.bin", "status", 503, times=3)
    with pytest.raises(DataUnavailableError, match="answers 503 Service Unavailable"):
        download(url, tmp_path / "other.bin")
    server.forget()
    server.fault("big.bin", "status", 403)
    with pytest.raises(DataUnavailableError, match="answers 403 Forbidden"):
        download(url, tmp_path / "other.bin")
    assert len(server.seen) == 1


def test_wrong_hash_missing_file_and_missing_member(packed, task_at, server, tmp_path):
    data, archive = tmp_path / "store", zipped({"train.tsv": GOOD.encode()})
    wrong_hash = packed("c.zip", archive, f', sha256: "{"0" * 64}"')
    refused(wrong_hash, data, "the SHA-256 is", DataUnavailableError)
    gone = task_at(f'{{url: "{server.put("c.zip", archive)}x", unpack: zip}}')
    refused(gone, data, "404", DataUnavailableError)
    other = packed("c.zip", archive, ", subfolder: other")
    refused(other, data, "'other' is not in the archive", DataFormatError)
    refused(packed("e.zip", zipped({})), data, "the archive holds no file", DataFormatError)
    with pytest.raises(DataFormatError, match=r"'devel\.tsv' is not among"):
        fetch(packed("c.zip", archive), data)


@pytest.mark.parametrize("place", ["all.txt", "gone.txt"])
def test_the_original_release_goes_into_its_own_folder(place, server, task_at, tmp_path):
    urls = [server.put(f"{name}.tsv", GOOD.encode()) for name in NAMES]
    original = server.put("all.txt", b"x").replace("all.txt", place)
    files = "{train: all.txt, validation: all.txt, test: all.txt}"
    release = f"\n  original: {{folder: release, files: {files}, url: {original}}}"
    listed = ", ".join(f'{{url: "{url}"}}' for url in urls)
    task = task_at(
        f"[{listed}]{release}", reader="{format: projected, original: pubtator, take: ids}"
    )
    data = tmp_path / "store"
    if place == "gone.txt":
        with pytest.raises(DataUnavailableError, match="404"):
            fetch(task, data)
        assert not (data / "release").exists()
    else:
        fetch(task, data)
        assert left_behind(data) == [*(f"corpus/{n}.tsv" for n in sorted(NAMES)), "release/all.txt"]


def test_agreement_tasks_give_their_steps_and_ask_nobody(tmp_path):
    with pytest.raises(DataUnavailableError) as caught:
        fetch(load_task("deid"), tmp_path)
    assert caught.value.access == "agreement"
    words = ["(1)", "physionet.org", "id.text, id.res", "biobench tasks validate deid"]
    assert [
        word for word in (*words, str(tmp_path / "deid")) if word not in caught.value.hint
    ] == []
    state = status(load_task("phenotype"), tmp_path)
    assert state.state == "agreement"
    assert any("CITI" in step for step in state.steps)
    assert any("ACTdb102003.csv, NOTEEVENTS.csv*" in step for step in state.steps)


def test_status_of_ready_missing_and_generated(tmp_path, fixtures):
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


def test_an_unknown_source(tmp_path):
    with pytest.raises(UsageError, match="no source 'blurp'") as caught:
        fetch(load_task("gad"), tmp_path, "blurp")
    assert "blurb" in caught.value.hint


def test_of_a_large_zip_on_the_hub_the_members_alone_are_read(task_at, tmp_path, monkeypatch):
    import huggingface_hub

    files = {f"splits/{name}": content for name, content in FILES.items()}
    archive = zipped({"huge.png": os.urandom(1000)} | files)

    def opened(self: object, path: str, mode: str) -> io.BytesIO:
        assert path == "datasets/org/name@main/data.zip"
        return io.BytesIO(archive)

    monkeypatch.setattr(huggingface_hub.HfFileSystem, "open", opened)
    members = ", ".join(files)
    task = task_at(
        f"{{url: 'https://huggingface.co/datasets/org/name/resolve/main/data.zip', unpack: zip, "
        f"members: [{members}]}}",
        files="{train: splits/train.tsv, validation: splits/devel.tsv, test: splits/test.tsv}",
    )
    fetch(task, tmp_path / "store")
    assert left_behind(tmp_path / "store") == [f"corpus/{name}" for name in sorted(files)]


@pytest.mark.parametrize(
    "name", ["../evil.tsv", "/etc/evil.tsv", "a/../../evil.tsv", "C:/evil.tsv", "..\\evil.tsv"]
)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_escaping_members_are_refused(name, kind, packed, tmp_path):
    files = FILES | {name: b"evil"}
    archive = zipped(files)
    if kind == "tar":
        archive = tarred([(n, content, tarfile.REGTYPE) for n, content in files.items()])
    task = packed(f"c.{kind}", archive)
    refused(task, tmp_path / "a" / "store", "outside the folder", DataFormatError)
    assert not list(tmp_path.rglob("evil*"))


def test_links_devices_and_encrypted_members_are_refused(packed, tmp_path):
    cases = {
        "zip": zipped({"train.tsv": b"x"}, {"devel.tsv": "/etc/passwd"}),
        "tar": tarred([("train.tsv", b"x", tarfile.REGTYPE), ("devel.tsv", None, tarfile.SYMTYPE)]),
        "tar.gz": tarred([("pipe", None, tarfile.FIFOTYPE)]),
    }
    for name, archive in cases.items():
        task = packed(f"c.{name}", archive)
        refused(task, tmp_path / "store", "is a link", DataFormatError)
    locked = bytearray(zipped({"train.tsv": b"x"}))
    for marker, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(marker) + at] |= 1
    task = packed("locked.zip", bytes(locked))
    refused(task, tmp_path / "store", "encrypted", DataFormatError)


def test_bombs_are_refused(tmp_path):
    for name, limits in (("bytes", {"most_bytes": 2_999_999}), ("files", {"most_files": 19})):
        archive = tmp_path / f"{name}.zip"
        archive.write_bytes(zipped({f"{i}.txt": b"0" * 150_000 for i in range(20)}))
        with pytest.raises(DataFormatError, match="holds more than"):
            unpack(archive, "zip", tmp_path / "out", **limits)
        assert not (tmp_path / "out").exists()
    assert len(unpack(archive, "zip", tmp_path / "out", most_bytes=3_000_000, most_files=20)) == 20


def with_header(kind: bytes, size: int) -> bytes:
    """A gzipped tar whose first member is a header of so many bytes."""
    info = tarfile.TarInfo("header")
    info.type, info.size = kind, size
    blocks = -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    return gzip.compress(info.tobuf() + bytes(blocks) + bytes(1024), compresslevel=1)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_large_header_of_a_tar_is_not_read(tmp_path, kind):
    """The library reads it whole: 2 GB of it came in 2 MB."""
    (tmp_path / "a.tar.gz").write_bytes(with_header(kind, 2**26))
    tracemalloc.start()
    with pytest.raises(DataFormatError, match="a header of the archive has 67108864 bytes"):
        unpack(tmp_path / "a.tar.gz", "tar", tmp_path / "out")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("version", ["0.0", "0.1", "1.0", "gnu"])
def test_sparse_files_in_a_tar_are_refused(tmp_path, version):
    """Their lists of pieces have no end."""
    info = tarfile.TarInfo("a.txt")
    info.size = 512
    if version == "gnu":
        info.type = tarfile.GNUTYPE_SPARSE
    else:
        major, minor = version.split(".")
        maps = {"0.0": "GNU.sparse.size", "0.1": "GNU.sparse.map", "1.0": "GNU.sparse.realsize"}
        info.pax_headers = {
            maps[version]: "0,1",
            "GNU.sparse.major": major,
            "GNU.sparse.minor": minor,
        }
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(b"1\n0\n1\n".ljust(512, b"\0")))
    with pytest.raises(DataFormatError, match="sparse"):
        unpack(tmp_path / "a.tar", "tar", tmp_path / "out")


def test_damaged_archives(packed, tmp_path):
    good = zipped({name: os.urandom(3000) for name in FILES})
    flipped = bytearray(good)
    flipped[2000] ^= 0xFF
    whole_tar = tarred([("train.tsv", os.urandom(50_000), tarfile.REGTYPE)])
    archives = {
        "half.zip": good[: len(good) // 2],
        "flipped.zip": bytes(flipped),
        "text.zip": b"<html>not found</html>",
        "half.tar": whole_tar[: len(whole_tar) // 2],
    }
    for name, archive in archives.items():
        refused(packed(name, archive), tmp_path / "store", "damaged", DataFormatError)
