"""Pretraining of candidate encoders: the causal detour, its masked twin, and proof that they match.

A recipe (YAML) names a base checkpoint, a corpus and a list of phases. `trainer.api` runs it, plans
it and compares the ledgers of two runs; nothing heavy is imported before one of these is called.
"""
