"""A model's results as metadata for elsewhere: model card, BibTeX, Every Eval Ever. Free of
torch."""
