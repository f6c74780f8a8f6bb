"""The trained encoder as a folder that loads elsewhere, with its model card."""
