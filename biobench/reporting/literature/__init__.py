"""Published scores and experiments, and what of them may stand beside own results."""
