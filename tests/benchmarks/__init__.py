"""Speed and cost beside a peer: each module prints ratios, run as `python -m
tests.benchmarks.NAME`.
"""
