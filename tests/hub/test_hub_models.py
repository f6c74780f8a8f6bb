"""`biobench run org/model@revision` against a server that speaks the hub's protocol."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.helpers.hub_commands import HubCommands
from tests.helpers.hub_server import HubServer
from tests.helpers.hub_wire import FaultKind

RUN = ("--task", "demo_topic", "--limit", "24", "--set", "training.epochs=1", "--device", "cpu", "--seeds", "1")
"""A run of a second."""


def blobs(command: HubCommands) -> list[Path]:
    """What lies in the cache of the hub as content, whole or not."""
    return sorted(p for p in (command.home / "hub").glob("models--*/blobs/*") if p.is_file())


def test_a_branch_is_resolved_to_its_commit_which_the_record_names(
    hub: HubServer, command: HubCommands, encoder: dict[str, bytes]
) -> None:
    repository = hub.repository("models", "org/tiny", {**encoder, "README.md": b"x", "evil.pkl": b"x"})
    first = repository.refs["v1"] = repository.refs["main"]
    repository.commit({"config.json": encoder["config.json"] + b"\n"})
    done = command("run", "org/tiny@v1", *RUN, "--parallel", "1", "--json")
    assert done.status == 0, done.err
    record = json.loads((command.home / done.json()[0]["predictions"]).with_suffix(".json").read_text())
    assert (record["model"]["id"], record["model"]["revision"]) == ("org/tiny", first)
    assert not hub.requests("evil.pkl")
    # by its tag the model is found although the record names the commit; nothing is asked of the hub
    asked = len(hub.seen)
    named = command("export", "org/tiny@v1", "--format", "csv")
    assert "no results of a model" not in named.err
    assert len(hub.seen) == asked
    # everything is in the cache: by the branch and by the commit, without the hub
    hub.forget()
    for name in ("org/tiny@v1", f"org/tiny@{first}"):
        again = command("run", name, *RUN, "--parallel", "1", "--json", offline=True)
        assert [r["status"] for r in again.json()] == ["skipped"], again.err
    assert not hub.seen
    # what is not in the cache is named in one line
    missing = command("run", "org/tiny@main", *RUN, offline=True)
    assert "model 'org/tiny@main' is neither a local folder nor at hand" in missing.refusal()


def test_a_gated_model_says_what_to_do_and_loads_with_a_token_that_was_let_in(
    hub: HubServer, command: HubCommands, encoder: dict[str, bytes]
) -> None:
    hub.repository("models", "org/gated", encoder, gated=True)
    hub.account("outside")
    hub.account("inside", granted={"org/gated"})
    nobody = command("run", "org/gated", *RUN)
    assert nobody.refusal() == "model 'org/gated' could not be fetched: it is gated, and no token was sent"
    assert f"accept its terms at {hub.address}/org/gated, then set HF_TOKEN" in nobody.err
    outside = command("run", "org/gated", *RUN, token="outside")
    assert outside.refusal().endswith("it is gated, and the account of your token has no access")
    assert "ask for access" in outside.err
    unknown = command("run", "org/gated", *RUN, token="expired")
    assert unknown.refusal().endswith("the hub does not know your token")
    assert command("run", "org/gated", *RUN, "--dry-run", token="inside").status == 0
    assert {s.token for s in hub.seen if s.server == "cdn"} == {None}


@pytest.mark.parametrize(
    ("name", "words", "hint"),
    [
        ("org/nothing", "it does not exist, or is private, and no token was sent", "check the id; for a private one"),
        ("org/tiny@v9", "it has no revision 'v9'", "name a branch, a tag or a commit of"),
    ],
)
def test_a_wrong_name_is_one_line(
    hub: HubServer, command: HubCommands, encoder: dict[str, bytes], name: str, words: str, hint: str
) -> None:
    hub.repository("models", "org/tiny", encoder)
    answer = command("run", name, *RUN)
    assert answer.refusal() == f"model '{name}' could not be fetched: {words}"
    assert f"hint: {hint}" in answer.err


def test_a_cut_download_is_continued_and_a_restart_fetches_what_is_missing(
    hub: HubServer, command: HubCommands, encoder: dict[str, bytes]
) -> None:
    hub.repository("models", "org/tiny", encoder)
    weights = len(encoder["model.safetensors"])
    hub.fault("GET /models/.*", "cut", 100_000)
    hub.fault("GET .*tokenizer.json", "status", 500)
    assert "the hub answers 500" in command("run", "org/tiny", *RUN).refusal()
    hub.forget()
    assert command("run", "org/tiny", *RUN, "--dry-run").status == 0
    ranges = [s.range for s in hub.seen if s.server == "cdn"]
    assert ranges in ([], [None]) or "bytes=100000-" in ranges
    assert weights in [b.stat().st_size for b in blobs(command)]


FAULTS: list[tuple[FaultKind, str, int, bytes, str]] = [
    ("size", "HEAD /org/tiny/resolve/.*model.safetensors", 1000, b"", "file should be of size 1000 but has size"),
    ("body", "GET /models/org/tiny/", 0, b"<html>sign in</html>", "but has size 20"),
    ("drop", "GET /api/models/org/tiny/revision", 0, b"", "the connection broke off"),
    ("stall", "GET /api/models/org/tiny/revision", 3, b"", "the connection broke off"),
]


@pytest.mark.parametrize(("kind", "pattern", "value", "body", "words"), FAULTS, ids=[f[0] for f in FAULTS])
def test_what_comes_wrong_is_refused_by_name(
    hub: HubServer,
    command: HubCommands,
    encoder: dict[str, bytes],
    kind: FaultKind,
    pattern: str,
    value: int,
    body: bytes,
    words: str,
) -> None:
    hub.repository("models", "org/tiny", encoder)
    hub.fault(pattern, kind, value, body=body, times=-1)
    answer = command("run", "org/tiny", *RUN, HF_HUB_DOWNLOAD_TIMEOUT="1")
    assert words in answer.refusal()
    assert not [b for b in blobs(command) if b.name.endswith(".incomplete") or b.read_bytes() == body]


def test_content_that_is_not_what_the_hub_announced_is_refused_even_in_its_size(
    hub: HubServer, command: HubCommands, encoder: dict[str, bytes]
) -> None:
    hub.repository("models", "org/tiny", encoder)
    other = bytearray(encoder["model.safetensors"])
    other[-5] ^= 1
    hub.fault("GET /models/org/tiny/", "body", body=bytes(other))
    answer = command("run", "org/tiny", *RUN, "--dry-run")
    assert "model.safetensors: its content is " in answer.refusal()
    (place,) = [w for w in answer.err.split() if "/blobs/" in w]
    os.remove(place)
    assert command("run", "org/tiny", *RUN, "--dry-run").status == 0
