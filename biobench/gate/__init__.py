"""The gate: floors without skill, the oracle's ceiling, and whether a task measures something. Free of torch.

verdict = gate(task, load_data(task, data_dir))      # policies, tests, verdict
verdict = ensure(task, data, results_dir)            # the stored one, or made and stored now
"""

from biobench.gate.ensure import ensure
from biobench.gate.verdict import gate

__all__ = ["ensure", "gate"]
