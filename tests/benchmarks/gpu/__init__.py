"""One script for a GPU machine without a network; see `__main__`."""
