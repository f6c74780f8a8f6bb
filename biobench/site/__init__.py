"""The results as static pages: page one, models, tasks and comparisons, read without a server. Free of torch."""
