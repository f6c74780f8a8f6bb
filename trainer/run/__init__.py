"""A run of phases: its first weights, its record, its restart."""
