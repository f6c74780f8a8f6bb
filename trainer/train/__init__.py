"""Training one phase: batches, optimiser, schedule, loop, checkpoints, processes."""
