"""The documents: their commands run or parse, their links lead somewhere, their examples work, and
the site builds.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from biobench.cli.main import app
from tests.helpers.cli_make import call
from tests.test_architecture import BELOW

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "trainer" / "README.md",
    *sorted((ROOT / "results").glob("**/README.md")),
]
RUN = re.compile(r"^<!-- run -->\n```bash\n(.+?)^```$", re.MULTILINE | re.DOTALL)
"""A shell block that a test executes, in the page's order, in an empty folder."""
PRINTS = re.compile(r"^<!-- prints -->\n```text\n(.+?)^```$", re.MULTILINE | re.DOTALL)
"""What the shell blocks of the page print, in the page's order; line breaks aside."""
TOP: Any = get_command(app)
MOST_WORDS, MOST_PAGES = 18_000, 17


def text_of(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def name_of(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.+?)^```$", text, re.MULTILINE | re.DOTALL)


def command_lines(text: str) -> Iterator[list[str]]:
    """The words of every `biobench` line of a document's shell blocks, without redirections and
    comments.
    """
    for block in blocks(text, "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if "biobench" in words and "podman" not in words:
                words = words[words.index("biobench") + 1 :]
                yield words[: words.index(">")] if ">" in words else words


def parse(words: list[str]) -> None:
    """Let the command line read the words, and run nothing. Raises click's errors."""
    context = TOP.make_context("biobench", list(words))
    command = TOP
    while hasattr(command, "resolve_command"):
        name, command, rest = command.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        context = command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_command_is_one_that_the_command_line_reads(document: Path) -> None:
    for words in command_lines(text_of(document)):
        parse(words)


def test_commands_and_options_in_sentences_exist() -> None:
    def walk(command: Any, path: str) -> Iterator[tuple[str, set[str]]]:
        yield (
            path,
            {
                option
                for parameter in command.params
                for option in (*parameter.opts, *parameter.secondary_opts)
            },
        )
        for name in getattr(command, "commands", {}) or {}:
            yield from walk(command.commands[name], f"{path} {name}".strip())

    known = dict(walk(TOP, ""))
    options = {"--help"}.union(*known.values())
    for document in DOCUMENTS:
        prose = re.sub(r"^```.+?^```$", "", text_of(document), flags=re.MULTILINE | re.DOTALL)
        for code in re.findall(r"`([^`]+)`", prose):
            words = code.split()
            if words[0] == "biobench" and len(words) > 1 and re.fullmatch(r"[a-z-]+", words[1]):
                assert words[1] in known, f"{document.name}: {code}"
            if words[0].startswith("--"):
                assert words[0] in options, f"{document.name}: {code}"


def test_extras_that_pages_install_are_declared() -> None:
    declared = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    named = {
        extra
        for document in DOCUMENTS
        for extra in re.findall(r"biobench\[(\w+)\]", text_of(document))
    }
    assert named
    assert named <= declared.keys()


PAGES_THAT_RUN = [d for d in DOCUMENTS if RUN.search(text_of(d))]


@pytest.mark.parametrize("document", PAGES_THAT_RUN, ids=name_of)
def test_a_page_runs_as_written(
    document: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Its commands in this process, what stands between them in a shell."""
    for name in [name for name in os.environ if name.startswith("BIOBENCH_")]:
        monkeypatch.delenv(name)
    if document.stem == "results":
        monkeypatch.setenv("BIOBENCH_RESULTS_DIR", str(ROOT / "results"))
    monkeypatch.chdir(tmp_path)
    # the Python that runs the tests, also where no environment is activated
    folder = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", folder, prepend=os.pathsep)
    printed = []
    for block in RUN.findall(text_of(document)):
        for line in re.split(r"^(biobench .+)\n", block, flags=re.MULTILINE):
            if line.startswith("biobench "):
                done = call(monkeypatch, capfd, *shlex.split(line)[1:])
                assert done.status == 0, f"{line}\n{done.out}\n{done.err}"
                assert "Traceback" not in done.err
                printed.append(" ".join(done.out.split()))
            elif line.strip():
                subprocess.run(["bash", "-euo", "pipefail", "-c", line], check=True, timeout=60)
    for quoted in PRINTS.findall(text_of(document)):
        # what is trained here may differ in its digits on another processor
        words = re.escape(" ".join(quoted.split()))
        pattern = re.sub(r"[\d.\\]+\\ ±[\d.\\]+", r"[\\d.]+ ±[\\d.]+", words)
        assert any(re.search(pattern, output) for output in printed), quoted


def test_the_pages_that_teach_by_commands_are_executed() -> None:
    assert {d.stem for d in PAGES_THAT_RUN} >= {"index", "tasks", "results", "pretraining"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_within_the_project_lead_somewhere(document: Path) -> None:
    for target, anchor in re.findall(
        r"\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]+)?\)", text_of(document)
    ):
        if document.is_relative_to(ROOT / "docs") and target.startswith("tasks/"):
            continue  # made at the site's build, which is strict
        file = document if not target else document.parent / target
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            heads = re.findall(r"^#+ (.+)$", text_of(file), re.MULTILINE)
            assert anchor[1:] in {
                re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads
            }, target


def test_the_documents_are_few_and_short() -> None:
    assert len(DOCUMENTS) <= MOST_PAGES
    assert sum(len(text_of(document).split()) for document in DOCUMENTS) <= MOST_WORDS
    assert len(text_of(ROOT / "README.md").split()) <= 650
    assert len(text_of(ROOT / "CONTRIBUTING.md").split()) <= 900
    assert len(text_of(ROOT / "CHANGELOG.md").splitlines()) <= 40


def test_the_reader_of_the_contributing_page_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from biobench.data.readers import base
    from biobench.errors import DataFormatError
    from biobench.kinds.base import get_kind

    get_kind("single_label")
    monkeypatch.setattr(base, "REGISTRY", {})
    source = next(b for b in blocks(text_of(ROOT / "CONTRIBUTING.md"), "python") if "@reader" in b)
    names: dict[str, Any] = {}
    exec(compile(source, "barred.py", "exec", dont_inherit=True), names)
    file = tmp_path / "all.txt"
    file.write_text("urgent|Chest pain | since morning.\nroutine|A check.\n", encoding="utf-8")
    spec: Any = type("Spec", (), {"type": "single_label", "labels": ["urgent", "routine"]})()
    request = base.Request(names["BarredOptions"](format="barred"), {"all": [file]}, spec)
    read = base.REGISTRY["barred"].read(request)
    assert [(d.labels, d.text) for d in read] == [
        (("urgent",), "Chest pain | since morning."),
        (("routine",), "A check."),
    ]
    file.write_text("urgent|Pain.\nno bar\n", encoding="utf-8")
    with pytest.raises(DataFormatError) as caught:
        list(base.REGISTRY["barred"].read(request))
    assert "all.txt:2" in str(caught.value)


def test_the_spec_types_and_formats_of_the_tasks_page_are_real(tmp_path: Path) -> None:
    from biobench.data.catalog import load_task
    from biobench.data.readers import formats
    from biobench.schema.kind import KINDS

    page = text_of(ROOT / "docs" / "tasks.md")
    spec = next(block for block in blocks(page, "yaml") if block.startswith("id: my_task"))
    (tmp_path / "my_task.yaml").write_text(spec, encoding="utf-8")
    assert load_task(tmp_path / "my_task.yaml").spec.labels == ["Anatomy", "Disease"]
    types, readers = (
        page.partition(f"## {head}")[2].partition("\n## ")[0] for head in ("Types", "Readers")
    )
    first_cells = "".join(re.findall(r"^\| (`.+?) \|", types, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", first_cells)) == set(KINDS)
    first_cells = "".join(re.findall(r"^\| (`.+?) \|", readers, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", first_cells)) <= set(formats())


def test_the_layers_of_the_architecture_page_are_those_of_the_code() -> None:
    table = (
        text_of(ROOT / "docs" / "architecture.md").partition("## Layers")[2].partition("\n## ")[0]
    )
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", table, re.MULTILINE)
    layer = {
        package: int(number) for number, names in rows for package in re.findall(r"`(\w+)`", names)
    }
    assert layer.keys() == BELOW.keys() - {"__main__"}
    assert max(layer.values()) <= 11
    for package, lower in BELOW.items():
        assert all(layer[name] < layer[package] for name in lower if package in layer), package


def test_the_ten_calls_of_the_architecture_page_exist() -> None:
    table = (
        text_of(ROOT / "docs" / "architecture.md")
        .partition("in ten calls")[2]
        .partition("\n## ")[0]
    )
    calls = re.findall(r"^\| (\d+) \| (.+?) \|", table, re.MULTILINE)
    assert [int(number) for number, _ in calls] == list(range(1, 11))
    for name in re.findall(r"`([\w./]+)`", " ".join(cell for _, cell in calls)):
        if name.endswith(".py"):
            assert (ROOT / "biobench" / name).is_file(), name
        elif "." in name:
            module, _, attribute = name.rpartition(".")
            file = ROOT / "biobench" / f"{module.replace('.', '/')}.py"
            package = ROOT / "biobench" / name.replace(".", "/")
            defined = file.is_file() and re.search(
                rf"^\s*(?:class|def) {attribute}\b", text_of(file), re.MULTILINE
            )
            assert defined or package.with_suffix(".py").is_file() or package.is_dir(), name


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="the docs extra is not installed")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "--strict",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    listed = (tmp_path / "site" / "llms.txt").read_text(encoding="utf-8").splitlines()[4:]
    assert len(listed) > 50
    for line in listed:
        match = re.fullmatch(r"- \[[^]]+\]\(([^)]+)\): \S.*", line)
        assert match, line
        assert (tmp_path / "site" / match[1]).is_file()
    for task in (
        p.stem
        for language in ("en", "fr", "needle")
        for p in (ROOT / "tasks" / language).glob("*.yaml")
    ):
        assert "Recipe" in (tmp_path / "site" / "tasks" / f"{task}.html").read_text(
            encoding="utf-8"
        )
    options = (tmp_path / "site" / "reference" / "cli.html").read_text(encoding="utf-8")
    assert all(option in options for option in ("--keep-model", "--results-dir", "--pooled"))


def test_the_documents_and_the_board_pack_submissions_into_one_folder() -> None:
    from leaderboard.submit import PACKED

    commands = list(command_lines(text_of(ROOT / "docs" / "sharing.md")))
    packed = next(words[words.index("--out") + 1] for words in commands if words[0] == "submit")
    assert packed.startswith(f"{PACKED}/")
    for command in ("verify-submission", "results"):
        assert any(packed in words for words in commands if words[0] == command)


PIP = """\
#!/bin/sh
echo "Collecting torch"
echo "  Downloading torch-2.13.0-cp311-linux.whl (900 MB)"
echo "Installing collected packages: torch, numpy, rich"
exit $PIP_STATUS
"""
"""Says what pip says, and installs nothing."""


@pytest.mark.parametrize("status", [0, 3])
def test_make_says_what_is_installed_in_few_lines_and_fails_where_it_fails(
    tmp_path: Path, status: int
) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    commands = {"pip": PIP, "python": "#!/bin/sh\n", "biobench": "#!/bin/sh\necho the demo\n"}
    venv = "mkdir -p .venv/bin && cp pip python biobench .venv/bin\n"
    for name, text in (commands | {"make-venv": f"#!/bin/sh\n{venv}"}).items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    # Below a `make test` its variables would have this one print the folders that it enters.
    environment = os.environ | {"PIP_STATUS": str(status)}
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        environment.pop(name, None)
    done = subprocess.run(
        ["make", "demo", "PYTHON=./make-venv"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[1:4] == [
        "Installing into .venv (some minutes the first time)",
        "  Downloading torch-2.13.0-cp311-linux.whl (900 MB)",
        "  unpacking 3 packages, a minute or two",
    ]
    assert ("the demo" in done.stdout) == (done.returncode == 0) == (status == 0)
