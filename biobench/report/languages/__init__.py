"""The notes and sentences of reports in other languages."""
