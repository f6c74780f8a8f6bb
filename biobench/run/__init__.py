"""Planning and making runs: models x tasks x seeds, locally or on a cluster."""

from biobench.run.api import run
from biobench.run.plan import Plan, Request, make_plan
from biobench.run.result import RunResult

__all__ = ["Plan", "Request", "RunResult", "make_plan", "run"]
