"""What must answer at once loads no torch."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from packaging.version import Version

from tests.helpers.processor import budget

MEASURE = """
import json, resource, sys
from biobench.cli.main import main
sys.argv = ["biobench", *json.loads(sys.argv[1])]
try:
    main()
except SystemExit as ended:
    status = ended.code
used = resource.getrusage(resource.RUSAGE_SELF)
deep = ("torch._dynamo", "transformers.modeling_utils")
modules = sorted(m for m in sys.modules if "." not in m or m in deep)
seconds = used.ru_utime + used.ru_stime
used = {"status": status, "cpu": seconds, "modules": modules, "loaded": len(sys.modules)}
sys.stderr.write("\\n" + json.dumps(used))
"""

NO_TORCH = {"torch", "transformers", "datasets"}
NOTHING_HEAVY = {*NO_TORCH, "pandas", "numpy", "scipy", "sklearn", "pyarrow", "streamlit"}

MOST_MODULES = {"--help": 400, "tasks list": 620, "run /nowhere/x --task demo_ner": 680}
"""Modules that a command may load, a fifth more than it does: each costs a millisecond or more."""
COMMANDS = dict.fromkeys(("--help", "run --help"), NOTHING_HEAVY)
COMMANDS |= dict.fromkeys(
    ("tasks list", "data status", "report --format json", "rescore"), NO_TORCH
)
REFUSED = [
    ("run dummy --task gad --task deid", "tasks gad, deid: no data"),
    ("run dummy --task demo_ner --seeds 46-42", "46-42"),
    ("run /nowhere/x --task demo_ner", "no such folder"),
    (
        "run nobody/nothing --task demo_ner --offline",
        "neither a local folder nor in the cache",
    ),
    ("errors m --task gad --results-dir nowhere", "no results folder 'nowhere'"),
    (
        "score --task demo_ner --model m --predictions nowhere.jsonl",
        "nowhere.jsonl",
    ),
]
"""Refused within a second of CPU on a quiet machine; twice that is allowed for a busy one."""


def measured(command: str, folder: Path) -> tuple[dict[str, Any], str]:
    """Exit status, CPU seconds and top modules of a command in a process of its own; and its
    stderr.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("BIOBENCH_")}
    words = [sys.executable, "-c", MEASURE, json.dumps(command.split())]
    done = subprocess.run(
        words, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1]), done.stderr


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_needs_no_torch_is_refused_before_it(arguments, words, tmp_path):
    used, err = measured(arguments, tmp_path)
    assert used["status"] == 2, err
    assert words in err
    assert not NO_TORCH & set(used["modules"])
    assert used["cpu"] < budget(2.0)


def test_an_unknown_source_is_refused_before_the_report_is_loaded(tmp_path):
    used, err = measured("report --source ran", tmp_path)
    assert "--source 'ran' is not known" in err
    assert not NOTHING_HEAVY & set(used["modules"])


@pytest.mark.parametrize("command", COMMANDS)
def test_no_heavy_import(command, tmp_path):
    (tmp_path / "results").mkdir()
    used, err = measured(command, tmp_path)
    assert used["status"] == 0, err
    assert not COMMANDS[command] & set(used["modules"])


@pytest.mark.parametrize("command", MOST_MODULES)
def test_few_modules_are_loaded_by_what_answers_at_once(command, tmp_path):
    used, err = measured(command, tmp_path)
    assert used["loaded"] <= MOST_MODULES[command], err


@pytest.mark.skipif(
    Version(version("transformers")) < Version("5.23"),
    reason="transformers 5.13 loads its models with a config",
)
def test_a_dry_run_loads_neither_the_engine_nor_the_baselines(tmp_path):
    used, err = measured("run dummy --task demo_ner --dry-run", tmp_path)
    assert used["status"] == 0, err
    assert err.splitlines()[0] == "reading demo_ner"
    assert not {"sklearn", "scipy", "pandas", "torch._dynamo", "transformers.modeling_utils"} & set(
        used["modules"]
    )


def test_the_first_screen_names_at_most_22_commands_in_five_panels_and_each_of_them_loads():
    from biobench.cli.commands import GROUPS, HIDDEN, Commands

    names = [name for group in GROUPS.values() for name in group]
    assert len(GROUPS) == 5
    assert len(names) <= 22
    commands = Commands(name="biobench").commands
    assert set(commands) == {*names, *HIDDEN}
    assert {name for name in commands if commands[name].hidden} == set(HIDDEN)


def test_every_argument_and_option_is_explained():
    from biobench.cli.commands import Commands

    def probe(model: Annotated[str, typer.Argument(help="A model.")]) -> None:
        return

    app = typer.Typer(add_completion=False)
    app.command()(probe)
    # typer 0.24 loses it under click 8.5
    keeps_help = bool(typer.main.get_command(app).params[0].help)
    waiting = list(Commands(name="biobench").commands.values())
    for command in waiting:
        waiting += getattr(command, "commands", {}).values()
        for parameter in command.params:
            if keeps_help or parameter.param_type_name == "option":
                assert parameter.help, f"{command.name}: {parameter.name}"
