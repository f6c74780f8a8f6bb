"""The energy of a run, where the user asks for it. codecarbon is an optional extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from biobench.errors import UsageError


class EnergyMeter:
    """kwh: kilowatt-hours of this process since the meter was started; None until it is read, or unasked."""

    kwh: float | None = None


@contextmanager
def metered(wanted: bool) -> Iterator[EnergyMeter]:
    """Measure the block where `wanted`. Opens no connection: the country, which only matters for emissions, is fixed.

    Raises UsageError where codecarbon is not installed.
    """
    meter = EnergyMeter()
    if not wanted:
        yield meter
        return
    if find_spec("codecarbon") is None:
        raise UsageError("--energy: codecarbon is not installed", hint="pip install 'biobench[energy]'")
    from codecarbon import OfflineEmissionsTracker

    tracker = OfflineEmissionsTracker(
        country_iso_code="FRA",
        save_to_file=False,
        log_level="critical",
        tracking_mode="process",
        allow_multiple_runs=True,
    )
    tracker.start()
    try:
        yield meter
    finally:
        tracker.stop()
        meter.kwh = float(tracker.final_emissions_data.energy_consumed)
