"""What commands share: options, progress, output and the lines below a run."""
