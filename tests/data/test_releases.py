"""Data against the releases that the spec knows by their hashes: `run` warns of another one, and
`--strict` refuses it.
"""

from pathlib import Path

import pytest

from biobench.data.catalog import list_tasks, load_task
from biobench.data.hashing import release_of, release_problem, task_hash
from biobench.data.load import load_data
from biobench.data.verify import verify
from biobench.errors import DataFormatError, SpecError
from biobench.runs.options import RunRequest
from biobench.runs.plan import make_plan
from tests.helpers.cli_make import call
from tests.helpers.spec_make import local, write_spec
from tests.helpers.tiny import make_tiny_encoder

ROWS = "id\ttext\tlabel\n" + "".join(f"{i}\tsentence {i}\t{'ab'[i % 2]}\n" for i in range(8))


def spec(folder: Path, releases: str = "") -> Path:
    for name in ("train", "validation", "test"):
        path = folder / "data" / f"{name}.tsv"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_text(
                ROWS.replace("sentence", f"{name} sentence")
                .replace("\n", f"\n{name}-")
                .rstrip(f"{name}-")
            )
    files = "{train: train.tsv, validation: validation.tsv, test: test.tsv}"
    reader = "{format: tsv, columns: {id: id, text: text, label: label}}"
    source = local("data", files, f"  {releases}\n")
    return write_spec(
        folder / "own.yaml", type="single_label", source=source, reader=reader, labels="[a, b]"
    )


def known(folder: Path) -> tuple[Path, str]:
    """A spec that knows the release that is there, and its hash."""
    digest = load_data(load_task(str(spec(folder))), folder).hash
    return spec(folder, f"releases: {{'corpus 1.0': {digest}}}"), digest


def altered(folder: Path) -> None:
    """One word of the training data is another."""
    path = folder / "data" / "train.tsv"
    path.write_text(path.read_text().replace("sentence 3", "sentence 4"))


def test_data_are_a_known_release_or_none_and_the_key_stays(tmp_path):
    plain = load_task(str(spec(tmp_path)))
    path, digest = known(tmp_path)
    task = load_task(str(path))
    assert task_hash(task, "local") == task_hash(plain, "local")
    assert release_of(task, "local", digest) == "corpus 1.0"
    assert release_problem(task, "local", digest) is None
    assert release_of(task, "local", "0" * 64) is None
    problem = release_problem(task, "local", "0" * 64)
    assert (
        problem
        == f"the documents (hash {'0' * 16}) differ from the release that the spec knows (corpus "
        f"1.0)"
    )
    assert release_problem(plain, "local", "0" * 64) is None, "it knows none"
    changed = load_task(str(path), ["reader.columns.text=label"])
    assert release_problem(changed, "local", "0" * 64) is None, (
        "the files may be those of the release"
    )


def test_verify_says_which_release_it_is(tmp_path, monkeypatch, capfd):
    path, _ = known(tmp_path)
    assert (
        ", release corpus 1.0\n"
        in call(monkeypatch, capfd, "data", "verify", path, "--data-dir", tmp_path).out
    )
    altered(tmp_path)
    assert verify(load_task(str(path)), tmp_path).release is None
    ended = call(monkeypatch, capfd, "data", "verify", path, "--data-dir", tmp_path)
    assert ended.status == 1
    assert "differ from the release that the spec knows (corpus 1.0)\n" in ended.out


def test_a_run_warns_before_training_and_strict_refuses(tmp_path):
    path, _ = known(tmp_path)

    def request(strict: bool) -> RunRequest:
        return RunRequest(
            model=(str(model),),
            tasks=(str(path),),
            data_dir=str(tmp_path),
            results_dir=str(tmp_path / "results"),
            device="cpu",
            strict=strict,
        )

    model = make_tiny_encoder(tmp_path / "tiny")
    assert make_plan(request(strict=True)).remarks() == []
    altered(tmp_path)
    (line,) = make_plan(request(strict=False)).remarks()
    assert line.startswith("warning: own: the documents (hash ")
    with pytest.raises(DataFormatError, match="differ from the release") as caught:
        make_plan(request(strict=True))
    assert "`releases`" in caught.value.hint


@pytest.mark.parametrize(
    "releases", ["{a: abc}", f"{{'': {'0' * 64}}}", f"{{{'x' * 121}: {'0' * 64}}}", "[a]"]
)
def test_releases_that_are_none_are_refused(tmp_path, releases):
    with pytest.raises(SpecError):
        load_task(str(spec(tmp_path, f"releases: {releases}")))


def test_shipped_specs_know_releases():
    sources = [source for task in list_tasks() for source in task.spec.all_sources]
    assert sum(bool(source.releases) for source in sources) >= 25
