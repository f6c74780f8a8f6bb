"""The app's tests build their stores with the report tests' helpers."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in ("store", "report"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / folder))
