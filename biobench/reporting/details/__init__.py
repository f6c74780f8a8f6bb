"""Runs seen closely: mistakes, needle grids, slices, interventions and pretraining."""
