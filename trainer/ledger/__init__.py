"""The ledger of a run in numbers, and whether two runs are a matched pair. Free of torch."""
