"""From text to memory-mapped shards of tokens, with the benchmark's documents excluded."""
