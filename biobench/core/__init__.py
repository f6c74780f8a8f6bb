"""What `biobench` and `trainer` both need, once; imports nothing of either but the errors."""
