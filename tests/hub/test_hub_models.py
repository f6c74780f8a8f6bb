"""`biobench run org/model@revision` against a server that speaks the hub's protocol."""

import json
import os

from tests.helpers.hub_commands import refusal

RUN = ("--task demo_topic --limit 24 --set training.epochs=1 --device cpu --seeds 1",)
"""A run of a second."""
PLAN = ("--task demo_topic --dry-run",)
"""No run: the model is downloaded, and that is all."""

CARD = b"---\nlicense: apache-2.0\n---\n# A model\n"


def test_a_tag_is_resolved_to_its_commit_which_the_record_names(hub, command, encoder):
    repository = hub.repository(
        "models", "org/tiny", {**encoder, "README.md": CARD, "evil.pkl": b"x"}
    )
    first = repository.refs["v1"] = repository.refs["main"]
    repository.commit({"config.json": encoder["config.json"] + b"\n"})
    done = command("run org/tiny@v1", *RUN, "--parallel 1 --json")
    assert done.status == 0, done.err
    record = json.loads(
        (command.home / done.json()[0]["predictions"]).with_suffix(".json").read_text()
    )
    assert (record["model"]["id"], record["model"]["revision"]) == ("org/tiny", first)
    assert hub.requests("model.safetensors")
    assert record["model"]["licence"] == "apache-2.0"
    assert not hub.requests("evil.pkl")
    # later runs take everything from the cache; what is not there is named in one line
    hub.forget()
    tag, commit, missing, known, unknown = command.several(
        ("run org/tiny@v1", *RUN, "--json"),
        ("run", f"org/tiny@{first}", *RUN, "--json"),
        ("run org/tiny", *RUN),
        ("errors org/tiny@v1 --task demo_topic",),
        ("errors org/tiny@v2 --task demo_topic",),
        offline=True,
    )
    assert [r["status"] for answer in (tag, commit) for r in answer.json()] == ["skipped"] * 2
    assert missing.refusal() == (
        "model 'org/tiny' could not be fetched: it is neither a local folder nor in the cache, "
        "and the hub was not asked (--offline or HF_HUB_OFFLINE)"
    )
    assert known.status == 0, "a model is known by its tag although the records name the commit"
    assert unknown.refusal() == "no results of a model 'org/tiny@v2'"
    assert not hub.seen


def test_what_the_hub_refuses_is_one_line_that_says_what_to_do(hub, command, encoder):
    for name in ("gated", "tiny", "down", "cut", "drop", "stall", "page", "bits", "busy"):
        hub.repository("models", f"org/{name}", encoder, gated=name == "gated")
    hub.account("outside")
    hub.account("inside", granted={"org/gated"})
    flipped = bytearray(encoder["model.safetensors"])
    flipped[-5] ^= 1
    hub.fault("org/down/revision", "status", 503, times=-1)
    hub.fault("org/drop/revision", "drop", times=-1)
    hub.fault("org/stall/revision", "stall", 3, times=-1)
    hub.fault("GET /models/org/cut/", "cut", 100_000)
    hub.fault("GET /models/org/page/", "body", body=b"<html>sign in</html>")
    hub.fault("GET /models/org/bits/", "body", body=bytes(flipped))
    words = {
        "gated": (
            "it is gated, and no token was sent",
            f"accept its terms at {hub.address}/org/gated, then set HF",
        ),
        "nothing": (
            "it does not exist, or is private, and no token was sent",
            "check the id; for a private one set",
        ),
        "tiny@v9": (
            "it has no revision 'v9'",
            f"name a branch, a tag or a commit of {hub.address}/org/tiny",
        ),
        "down": ("the hub answers 503", "try again later"),
        "drop": ("the connection broke off: Server disconnected", "check the network"),
        "stall": (
            "it is neither a local folder nor in the cache, and the hub cannot be reached",
            "check the name",
        ),
        "page": ("Consistency check failed: file should be of size", "repeat the command"),
        "bits": ("its content is", "delete "),
    }
    answers = command.several(
        *(("run", f"org/{name}", *PLAN) for name in words), HF_HUB_DOWNLOAD_TIMEOUT="1"
    )
    for name, answer in zip(words, answers, strict=True):
        what, hint = words[name]
        assert what in refusal(answer), name
        assert answer.err.splitlines()[-1].startswith(f"hint: {hint}"), (name, answer.err)
    assert not list(command.home.glob("hub/**/*.incomplete")), "no part of a file is kept"
    whole = {len(content) for content in encoder.values()}
    assert {p.stat().st_size for p in command.home.glob("hub/models--*/blobs/*")} <= whole
    assert len(hub.requests("org/down/revision")) == 3
    # now in order: the cut file is fetched, the wrong one replaced after its removal; with tokens
    # of three users; a hub that is busy is asked again
    (place,) = [word for word in answers[-1].err.split() if "/blobs/" in word]
    os.remove(place)
    hub.fault("org/busy/revision", "status", 429, body=b"0")
    hub.fault("org/busy/revision", "status", 503, body=b"0")
    hub.fault("GET /models/org/busy/", "status", 429, body=b"0")
    *again, outside, old, inside = command.several(
        *(("run", f"org/{name}", *PLAN) for name in ("cut", "bits", "page", "busy")),
        *((f"token={token}", "run", "org/gated", *PLAN) for token in ("outside", "old", "inside")),
    )
    assert [answer.status for answer in again] == [0] * 4, [answer.err for answer in again]
    assert refusal(outside).endswith("it is gated, and the account of your token has no access")
    assert "ask for access" in outside.err
    assert refusal(old).endswith("the hub does not know your token")
    assert inside.status == 0
