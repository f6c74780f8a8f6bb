"""The table of commands: what the first screen of `biobench --help` shows, and which module holds
each command.

A command is the function, or the group of commands, of its name in its module of `biobench.cli`,
which is imported when the command is called: help, an unknown command and every light command
answer at once.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from biobench.errors import UsageError

GROUPS: dict[str, dict[str, str]] = {
    "Evaluate": {
        "run": "Fine-tune models on tasks over several seeds, and score them.",
        "report": "The results table: own runs, published scores, baselines.",
        "compare": "Is one model better than another? A verdict, differences and intervals.",
        "errors": "What a model missed or predicted falsely, in context.",
        "leaderboard": "Open the leaderboard in a browser.",
        "demo": "The whole way on embedded data in minutes: no network, no GPU.",
    },
    "Tasks and data": {
        "tasks": "List, describe, validate and write task specs; their baselines.",
        "data": "Status of each task's data; download, verify, pack, export.",
    },
    "Pretrain": {
        "pretrain": "Run a pretraining recipe; new, plan, bench, schema.",
        "corpus": "Build, inspect and count a pretraining corpus.",
        "ledger": "Are two pretraining runs a matched pair?",
        "study": "Pretrain and benchmark a declared set of recipes and seeds.",
        "analyze": "CKA, transplants, freezing, stability, overlap with test sets.",
    },
    "Share": {
        "submit": "Pack a model's runs as a submission.",
        "verify-submission": "Check a submission and score it again.",
        "results": "Pull and push shared results.",
        "export": "Hub metadata, Every Eval Ever JSON, BibTeX.",
        "score": "Score predictions that were made elsewhere.",
        "reproduce": "Repeat a stored run and say whether it agrees.",
    },
    "Scale": {
        "slurm": "Print a batch script of identical workers, or of a pretraining job.",
        "status": "Runs that are done, running or failed, seen from any machine.",
        "speed": "Throughput and memory by document length.",
    },
}
"""Panel of the first screen -> command -> its line there."""

HIDDEN = ("needle", "rescore", "pretrain-new", "pretrain-plan", "pretrain-bench", "pretrain-schema")
"""Commands that work without a line on the first screen: aliases kept for one release, and
`rescore`.
"""

NAMES = [*(name for group in GROUPS.values() for name in group), *HIDDEN]
"""Every command: those of the first screen in its order, then the hidden ones."""

_MODULES = {
    **dict.fromkeys(("run", "needle"), "runs"),
    "rescore": "score",
    "ledger": "pretrain",
    "study": "pretrain",
    **dict.fromkeys(("submit", "verify-submission", "results", "export"), "share"),
    **dict.fromkeys(("slurm", "status"), "cluster"),
    **dict.fromkeys((name for name in HIDDEN if name.startswith("pretrain-")), "pretrain"),
}
"""Commands that another module than one of their own name holds."""

_TRAINER = ("pretrain", "corpus", "analyze", "demo")
"""Modules whose commands import `trainer`, a name that another distribution may have too."""


@cache
def load(name: str) -> Any:
    """The command of that name, which is imported now."""
    module = _MODULES.get(name, name)
    if module in (*_TRAINER, "leaderboard"):
        from biobench.core.packages import check_ours

        check_ours("trainer" if module in _TRAINER else "leaderboard")
    from biobench.cli.console.options import explain

    command = getattr(
        import_module(f"biobench.cli.{module}"), name.removeprefix("pretrain-").replace("-", "_")
    )
    group = typer.Typer()
    if isinstance(command, typer.Typer):
        for member in command.registered_commands:
            assert member.callback is not None
            explain(member.callback)
        group.add_typer(command, name=name)
    else:
        explain(command)
        group.command(name)(command)
    loaded = typer.main.get_group(group).commands[name]
    loaded.hidden = name in HIDDEN
    return loaded


class Commands(TyperGroup):
    """The group of all commands, which imports none of them to list them."""

    _listing = False

    @property
    def commands(self) -> dict[str, Any]:
        """Every command by name, each of them imported."""
        return {name: load(name) for name in NAMES}

    @commands.setter
    def commands(self, _: object) -> None:
        """Typer's table of what was registered, which is nothing."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Those of the first screen, in its order."""
        return NAMES[: -len(HIDDEN)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command; while help is printed, its name and line alone."""
        if self._listing:
            panel = next(panel for panel, group in GROUPS.items() if cmd_name in group)
            return TyperCommand(cmd_name, help=GROUPS[panel][cmd_name], rich_help_panel=panel)
        return load(cmd_name) if cmd_name in NAMES else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The first screen, which leaves the options of shell completion out."""
        for option in ctx.command.params:
            option.hidden = option.name in ("install_completion", "show_completion")
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first word names. Raises UsageError with the nearest name."""
        name = args[0]
        if name not in NAMES and not name.startswith("-"):
            from biobench.schema.strict import suggest

            hint = suggest(name, NAMES, otherwise="`biobench --help` lists the commands")
            raise UsageError(f"unknown command '{name}'", hint=hint)
        return super().resolve_command(ctx, args)
