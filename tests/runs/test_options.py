"""The options of a run are declared once: command line, Python keywords and request come from one
declaration.
"""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import biobench
from biobench.cli.main import app
from biobench.data.catalog import spec_paths
from biobench.errors import SpecError, UsageError
from biobench.runs.options import RunRequest, in_keywords, options
from biobench.runs.plan import make_plan
from tests.helpers.cli_make import QUICK

_CLI_ONLY = {"as_json", "help", "against"}


def parameters(name: str) -> dict[str, Any]:
    commands: Any = get_command(app)
    return {p.name: p for p in commands.commands[name].params}


def test_every_option_of_the_command_is_a_keyword_and_a_field() -> None:
    shown = set(parameters("run")) - _CLI_ONLY
    keywords = set(inspect.signature(biobench.run).parameters)
    fields = {f.name for f in dataclasses.fields(RunRequest)}
    assert shown == set(options())
    assert keywords - shown == {"reporter"}
    assert fields == shown


def test_the_keywords_of_the_python_interface_are_these() -> None:
    """A public contract: what callers write stays, in kind and default."""
    found = {
        n: (p.kind.name, p.default) for n, p in inspect.signature(biobench.run).parameters.items()
    }
    defaults: dict[str, Any] = dict.fromkeys(("suite", "seeds", "data_dir", "limit", "reporter"))
    defaults |= dict.fromkeys(("force", "offline", "strict", "trust_remote_code"), False)
    defaults |= {
        "device": "auto",
        "parallel": "auto",
        "executor": "local",
        "track": "fixed",
        "gate": True,
    }
    for name, default in {**defaults, "overrides": (), "results_dir": "results"}.items():
        assert found[name] == ("KEYWORD_ONLY", default), name
    assert [n for n, (kind, _) in found.items() if kind == "POSITIONAL_OR_KEYWORD"] == [
        "model",
        "tasks",
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seeds": "x"}, "seeds 'x' are not understood"),
        ({"overrides": "training.epochs"}, "overrides 'training.epochs' is not KEY=VALUE"),
        ({"protocol": "small", "overrides": "a.b=1"}, "overrides does not go with protocol small"),
    ],
)
def test_python_is_told_in_its_own_keywords(given: dict[str, Any], words: str) -> None:
    with pytest.raises((UsageError, SpecError)) as caught:
        biobench.run("dummy", "demo_topic", **given)
    assert words in caught.value.what
    assert "--" not in str(caught.value) + caught.value.hint


def test_what_is_given_becomes_what_is_planned() -> None:
    more: dict[str, Any] = {
        "seeds": range(42, 44),
        "data_dir": Path("d"),
        "parallel": 2,
        "overrides": "x=1",
    }
    given = RunRequest(Path("m"), ["a", Path("b.yaml")], **more)
    assert (given.model, given.tasks, given.seeds, given.data_dir) == (
        ("m",),
        ("a", "b.yaml"),
        "42,43",
        "d",
    )
    assert (given.parallel, given.overrides) == ("2", ("x=1",))
    assert RunRequest("m", seeds=7).seeds == "7"
    mapped = {"training": {"epochs": 1, "max_steps": None}, "head.pooling": "mean"}
    written = ("training.epochs=1", "training.max_steps=null", 'head.pooling="mean"')
    assert RunRequest("m", overrides=mapped).overrides == written
    again = dataclasses.replace(pickle.loads(pickle.dumps(given)), limit=3)
    assert (again.model, again.limit, again.started) == (given.model, 3, given.started)
    with pytest.raises(UsageError, match="threads is 0"):
        RunRequest("m", threads=0)


def test_paths_single_values_and_lists_are_alike(encoder: Path) -> None:
    first = biobench.run(encoder, tasks=spec_paths()["demo_ner"], seeds=1, **QUICK)
    again = biobench.run([str(encoder)], tasks=["demo_ner"], seeds=[1], **QUICK)
    assert [r.status for r in first] == ["done"]
    assert [(r.status, r.key) for r in again] == [("skipped", first[0].key)]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"track": "free"}, "unknown --track 'free'"),
    ({"executor": "slurm"}, "unknown --executor 'slurm'"),
    ({"protocol": "smal"}, "unknown --protocol 'smal'"),
    ({"parallel": -1}, "unknown --parallel '-1'"),
    ({"parallel": "two"}, "unknown --parallel 'two'"),
    ({"seeds": []}, "--seeds"),
    ({"protocol": "small", "overrides": "training.epochs=1"}, "--set does not go with --protocol"),
    ({"protocol": "small", "limit": 5}, "--limit does not go with --protocol"),
    ({"protocol": "small", "track": "tuned"}, "--track tuned does not go with --protocol"),
    ({"protocol": "small", "fractions": 0.5}, "--fractions does not go with --protocol"),
    ({"track": "ready", "seeds": 1}, "--seeds does not go with --track ready"),
    ({"track": "ready", "fractions": 0.5}, "--fractions does not go with --track ready"),
    ({"track": "ready", "keep_model": "kept"}, "--keep-model does not go with --track ready"),
    (
        {"track": "ready", "overrides": "training.epochs=3"},
        "--set does not go with --track ready",
    ),
    ({"fractions": "0.5,2"}, "--fractions: '2' is not a share above 0 and at most 1"),
    ({"fractions": "half"}, "--fractions: 'half' is not a share above 0 and at most 1"),
    (
        {"fractions": "0.5", "overrides": "training.train_fraction=0.1"},
        "--set training.train_fraction does not go with --fractions",
    ),
    ({"executor": "ray", "worker_gpus": 1.5}, "--worker-gpus 1.5 does not apply"),
    ({"executor": "ray", "worker_gpus": 0.0}, "--worker-gpus 0 does not apply"),
    ({"worker_gpus": 0.5}, "--worker-gpus 0.5 does not apply"),
    ({"languages": "xx", "types": "needle"}, "no task has --language xx --type needle"),
]


@pytest.mark.parametrize(("wrong", "words"), REFUSED)
def test_what_is_wrong_is_refused_before_training(
    encoder: Path, wrong: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(in_keywords(words))):
        biobench.run(encoder, tasks="demo_ner", **wrong)
    assert not Path("results").exists()


def test_a_device_that_is_not_there_is_refused_before_the_data_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(
        "biobench.runs.plan.load_folds", lambda *_, **__: pytest.fail("the data are read")
    )
    with pytest.raises(UsageError, match="sees no CUDA device"):
        make_plan(RunRequest("dummy", ["demo_ner"], device="cuda"))
