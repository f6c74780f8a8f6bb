"""The data desk: where each task's data stands, fetching it safely, verifying it, packing it.

Status reads no documents, fetch is the only part of BioBench that downloads corpora, and nothing here runs
code that came with data.
"""

from __future__ import annotations

from biobench.data.desk.bundle import bundle
from biobench.data.desk.fetch import Fetched, fetch
from biobench.data.desk.status import Status, status
from biobench.data.desk.verify import DataReport, verify

__all__ = ["DataReport", "Fetched", "Status", "bundle", "fetch", "status", "verify"]
