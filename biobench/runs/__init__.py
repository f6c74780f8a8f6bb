"""Planning and making runs: models x tasks x seeds, locally or on a cluster."""
