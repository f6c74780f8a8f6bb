"""The version of the package and its folder, for every layer."""

from __future__ import annotations

from pathlib import Path

__version__ = "0.1.0"
PACKAGE = Path(__file__).resolve().parent
"""The folder of this file."""
