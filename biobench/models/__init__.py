"""Any checkpoint as `hidden (tokens, width)`, and the heads that consume only that."""
