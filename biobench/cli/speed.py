"""`biobench speed`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.console.common import DataDir, Json, Threads, print_json
from biobench.errors import UsageError

if TYPE_CHECKING:
    from biobench.runs.speed_against import SpeedRatio, Work


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("speed")(speed)


def speed(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Hub id, id@revision, or local folder.")],
    *,
    lengths: Annotated[str, typer.Option("--lengths", help="Document lengths in tokens.")] = "128,512",
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Documents a step.")] = 16,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps that are measured.")] = 5,
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
    threads: Threads = None,
    against: Annotated[
        str | None, typer.Option("--against", help="hf-trainer: the same fine-tuning by the HF Trainer, in turn.")
    ] = None,
    fits: Annotated[
        bool, typer.Option("--fits", help="How the cost grows with documents, tokens, seeds and tasks.")
    ] = False,
    task: Annotated[str, typer.Option("--task", help="Of --against and --fits: a token_ner task.")] = "demo_ner",
    data_dir: DataDir = None,
    documents: Annotated[
        int, typer.Option("--documents", min=4, help="Of --against and --fits: training documents.")
    ] = 800,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Of --against and --fits.")] = 1,
    seeds: Annotated[str, typer.Option("--seeds", help="Of --against and --fits.")] = "42",
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Turns of each contender, with --against.")] = 3,
    offline: Annotated[bool, typer.Option("--offline", help="Open no connection.")] = False,
    as_json: Json = False,
) -> None:
    """Fine-tuning and inference throughput, and memory, by document length; or against the HF Trainer on a task."""
    from dataclasses import asdict

    from biobench.models.loading import quiet_libraries
    from biobench.runs.speed import measure

    quiet_libraries()
    if against is not None or fits:
        import torch

        from biobench.runs.speed_against import Work
        from biobench.schema.task import parse_seeds

        if against not in (None, "hf-trainer"):
            raise UsageError(f"--against '{against}' is not known", hint="hf-trainer")
        try:
            numbers = tuple(parse_seeds(seeds))
        except ValueError as error:
            raise UsageError(f"--seeds '{seeds}' is not understood: {error}", hint="for example 42,43") from None
        count = threads or torch.get_num_threads()
        work = Work(model, task, data_dir, documents, epochs, numbers, device, count, offline=offline)
        _compare(work, rounds if against is not None else 0, fits=fits, as_json=as_json)
        return
    parts = lengths.split(",")
    if not all(p.strip().isdigit() for p in parts):
        raise UsageError(f"--lengths '{lengths}' is not understood", hint="write whole numbers, such as 128,512")
    lines = measure(model, [int(p) for p in parts], batch_size=batch_size, steps=steps, device=device, offline=offline)
    if as_json:
        print_json([asdict(line) for line in lines])
        return
    for line in lines:
        typer.echo(
            f"{line.model}, {line.parameters / 1e6:.1f}M parameters, {line.length} tokens x {line.batch_size}: "
            f"training {line.train_tokens_per_second:,.0f} tokens/s, "
            f"inference {line.inference_tokens_per_second:,.0f} tokens/s, "
            f"peak {line.peak_memory_bytes / 2**20:,.0f} MiB ({line.precision}, {line.attention})"
        )


def _compare(work: Work, rounds: int, *, fits: bool, as_json: bool) -> None:
    """Run the contenders for so many rounds, then the fits, and print both."""
    from biobench.core.threads import machine_load
    from biobench.runs.speed_against import Figures, best_flags, compare_speed, cost_fits
    from biobench.runs.speed_against import as_json as plain

    def report(turn: int, figures: Figures) -> None:
        scores = " ".join(f"{100 * score:.1f}" for score in figures.scores)
        typer.echo(
            f"{turn} {figures.contender}: {figures.wall_seconds:.1f} s, CPU {figures.cpu_seconds:.1f} s, "
            f"peak {figures.peak_memory_bytes / 2**20:,.0f} MiB, micro F1 {scores}",
            err=True,
        )

    load = machine_load()
    typer.echo(
        f"load of the machine at the start: {'not known' if load is None else f'{load:.1f}'}, {work.threads} threads",
        err=True,
    )
    ratios = compare_speed(work, rounds, report=report) if rounds else []
    lines = cost_fits(work, report) if fits else []
    best, fastest = best_flags(ratios)
    if as_json:
        names = {"best_at_our_score": best and best.contender, "fastest": fastest and fastest.contender}
        print_json({"ratios": plain(ratios), **names, "fits": plain(lines)})
        return
    for r in ratios:
        typer.echo(
            f"{r.contender}: {r.wall_seconds:.1f} s; of ours: wall {r.wall:.2f}, CPU {r.cpu:.2f}, "
            f"memory {r.memory:.2f}; micro F1 {100 * r.score:.1f}{_over_ours(r)}"
        )
    if fastest is not None:
        shown = "none" if best is None else f"{best.contender}, {best.wall:.2f} times our wall time"
        if fastest.interval is None:
            shown = "not known from one seed; give several, such as --seeds 42-46"
        typer.echo(f"best flags with a score not below ours within the noise of seeds: {shown}")
        typer.echo(f"fastest flags whatever the score: {fastest.contender}, {fastest.wall:.2f} times our wall time")
    for line in lines:
        typer.echo(
            f"seconds = {line.fixed:.2f} + {line.slope:.3g} x {line.size} (off by {100 * line.worst:.0f} % at most)"
        )


def _over_ours(ratio: SpeedRatio) -> str:
    """The score's distance from ours with its interval, in points."""
    from biobench.runs.speed_against import OURS

    if ratio.interval is None or ratio.contender == OURS:
        return ""
    low, high = (100 * end for end in ratio.interval)
    return f" ({100 * ratio.difference:+.1f} points, 95 % interval {low:+.1f} to {high:+.1f}, paired by seed)"
