"""What a recipe costs: steps, tokens, FLOPs, memory and time, without weights."""
