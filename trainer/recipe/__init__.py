"""Recipes: read, checked and described. Free of torch."""
