"""Baselines without skill, the oracle, and whether a task measures something. Free of torch.

verdict = gate(task, load_data(task, data_dir))      # baselines, tests, verdict
verdict = ensure(task, data, results_dir)            # the stored one, or made and stored now
"""

from biobench.baselines.verdict import ensure, gate

__all__ = ["ensure", "gate"]
