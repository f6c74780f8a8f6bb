"""Submissions: packed, bounded, unpacked and verified. Free of torch."""
