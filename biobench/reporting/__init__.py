"""Tables, comparisons and exports from stored runs and published scores. Free of torch."""
