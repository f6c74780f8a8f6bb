"""`biobench speed`."""

from __future__ import annotations

from biobench.cli.console.arguments import Count, Device, Json, Offline, Threads
from biobench.cli.console.output import answer
from biobench.errors import UsageError


def speed(
    model: str,
    *,
    lengths: str = "128,512",
    batch_size: Count = 16,
    steps: Count = 5,
    device: Device = "auto",
    threads: Threads = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """Fine-tuning and inference throughput, and memory, by document length.

    model: Hub id, id@revision, or local folder.
    lengths: Document lengths in tokens.
    batch_size: Documents a step.
    steps: Steps that are measured.
    """
    numbers = lengths.split(",")
    if not all(p.strip().isdecimal() for p in numbers):
        raise UsageError(
            f"--lengths '{lengths}' is not understood", hint="write whole numbers, such as 128,512"
        )
    from biobench.models.loading import quiet_libraries
    from biobench.runs.speed import measure

    quiet_libraries()
    measured = measure(
        model,
        [int(p) for p in numbers],
        batch_size=batch_size,
        steps=steps,
        device=device,
        offline=offline,
    )
    lines = []
    for row in measured:
        lines.append(
            f"{row.model}, {row.parameters / 1e6:.1f}M parameters, {row.length} tokens x "
            f"{row.batch_size}: "
            f"training {row.train_tokens_per_second:,.0f} tokens/s, "
            f"inference {row.inference_tokens_per_second:,.0f} tokens/s, "
            f"peak {row.peak_memory_bytes / 2**20:,.0f} MiB ({row.precision}, {row.attention})"
        )
    answer(as_json, measured, lines)
