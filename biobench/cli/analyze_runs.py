"""The parts of `biobench analyze` that read or make fine-tuning runs."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the commands to the group."""


def own_trainer() -> None:
    """Make sure that the import name `trainer` is ours. Raises UsageError."""
    from biobench.cli.pretrain import trainer_api

    trainer_api()
