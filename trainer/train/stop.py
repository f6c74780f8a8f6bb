"""A signal asks the run to stop after the step in hand."""

from __future__ import annotations

from biobench.core.stop import StopFlag as StopFlag


class StoppedError(Exception):
    """The run was asked to stop before its training began: nothing of a state is to be saved."""
