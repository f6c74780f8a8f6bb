"""Checkpoints that do not belong together: one clear line and a hint from the commands, and nothing written."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from biobench.cli.main import main
from tests.helpers.trainer_make import write

OTHERS = {
    "depth": ({"num_hidden_layers": 3}, "has 4 layers, ", "num_hidden_layers is 4 in "),
    "width": ({"hidden_size": 16}, "has 32 dimensions, ", "hidden_size is 32 in "),
    "tokenizer": ({"vocabulary": 420}, "the tokenizers of ", "the checkpoints do not fit: "),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One checkpoint, and one other in each respect."""
    root = tmp_path_factory.mktemp("models")
    return {"a": write(root / "a", seed=5)} | {
        name: write(root / name, seed=5, **changes) for name, (changes, *_) in OTHERS.items()
    }


def refusal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The line that the command refuses with; it ends with status 2, one hint and an empty stdout."""
    monkeypatch.setattr(sys, "argv", ["biobench", "analyze", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if not line.startswith("states of ")]
    assert out == ""
    assert len(lines) == 2, err
    assert lines[1].startswith("hint: ")
    return lines[0]


@pytest.mark.parametrize("states", ["mean", "tokens"])
@pytest.mark.parametrize("other", OTHERS)
def test_cka_refuses(
    other: str,
    states: str,
    models: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--texts", "embedded", "--n", "8", "--max-length", "32", "--states", states]
    said = refusal(monkeypatch, capsys, "cka", models["a"], models[other], *options)
    assert OTHERS[other][1] in said
    assert str(models[other]) in said


@pytest.mark.parametrize("other", OTHERS)
def test_a_noise_pair_of_another_kind_is_refused(
    other: str, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a = models["a"]
    options = ["--noise", a, models[other], "--texts", "embedded", "--n", "8", "--max-length", "32"]
    assert OTHERS[other][1] in refusal(monkeypatch, capsys, "cka", a, a, *options)


@pytest.mark.parametrize("other", OTHERS)
def test_transplant_refuses_and_writes_nothing(
    other: str,
    models: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "hybrid"
    said = refusal(monkeypatch, capsys, "transplant", models["a"], models[other], "--layers", "0", "--out", out)
    assert OTHERS[other][2] in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "said", "hint"),
    [
        (["--device", "gpu"], "--device 'gpu' is not known", "auto, cpu or cuda"),
        (["--dtype", "float16"], "unknown dtype 'float16'", "float32 or bfloat16"),
        (["--texts", "nowhere.txt"], "has no files at nowhere.txt", "--texts takes a file"),
        (["--texts", "texts.jsonl", "--field", "body"], "no text under 'body'", "--field"),
    ],
)
def test_cka_names_its_own_options(
    options: list[str],
    said: str,
    hint: str,
    models: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts.jsonl").write_text('{"text": "words"}\n', encoding="utf-8")
    monkeypatch.setattr(
        sys, "argv", ["biobench", "analyze", "cka", *[str(models["a"])] * 2, "--texts", "embedded", *options]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert said in lines[0]
    assert hint in lines[1]


@pytest.mark.parametrize("command", ["cka", "transplant"])
def test_a_run_s_folder_is_answered_with_its_model(
    command: str,
    models: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = tmp_path / "run"
    shutil.copytree(models["a"], run / "model")
    options = {"cka": ["--texts", "embedded"], "transplant": ["--layers", "0", "--out", str(tmp_path / "out")]}
    monkeypatch.setattr(sys, "argv", ["biobench", "analyze", command, str(models["a"]), str(run), *options[command]])
    with pytest.raises(SystemExit):
        main()
    assert f"give {run / 'model'}" in capsys.readouterr().err
