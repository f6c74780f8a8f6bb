"""Miniature stores, corpora, checkpoints and servers that several tests build on."""
