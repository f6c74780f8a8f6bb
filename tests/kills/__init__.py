"""Commands that are killed at any moment and given again; `python -m tests.kills` for many."""
