"""The fine-tuning engine: one loop for every encoder and head."""
