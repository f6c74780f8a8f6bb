"""Strict models of everything that is declared or recorded."""
