"""Runs on a Ray cluster: joining it, what each worker reserves, handing out the runs, and the worker itself."""
