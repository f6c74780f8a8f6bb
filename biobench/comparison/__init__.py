"""Models compared: on what, with which evidence, and in which words. Free of torch."""
