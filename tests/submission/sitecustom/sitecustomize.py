"""Loaded by the checking process of a test: makes reading a predictions file misbehave as a hostile
one would.
"""

import os

WHAT = os.environ.get("BIOBENCH_TEST_READER")

if WHAT:
    import ctypes

    import biobench.submission.verify as verify

    class OddError(Exception):
        """Of a library that nobody expected."""

    def _misbehave(*_: object) -> None:
        while WHAT == "spin":
            pass
        if WHAT == "die":
            ctypes.string_at(0)
        if WHAT == "eat":
            kept = []
            while True:
                kept.append(
                    bytes(2**28)
                )  # address space, so that the limit of memory comes before that of time
        raise OddError("no")

    verify.check_predictions = _misbehave
