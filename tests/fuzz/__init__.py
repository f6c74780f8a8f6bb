"""Generated input for everything that reads what others wrote: `python -m tests.fuzz --inputs
100000`.
"""
