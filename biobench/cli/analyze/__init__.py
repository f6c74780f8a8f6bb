"""`biobench analyze`: the mechanism tools, on any pair of checkpoints."""

from __future__ import annotations

import typer

from biobench.cli.analyze import cka as analyze_cka
from biobench.cli.analyze import runs as analyze_runs
from biobench.cli.analyze import variance as analyze_variance

app = typer.Typer(no_args_is_help=True, help="Why it works: similarity of states, transplants, freezing, stability.")


def register(root: typer.Typer) -> None:
    """Add the group of commands to the application."""
    analyze_cka.register(app)
    analyze_runs.register(app)
    analyze_variance.register(app)
    root.add_typer(app, name="analyze")
