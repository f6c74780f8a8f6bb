"""Plans as files: written, cut into parts, packed on devices, handed to a batch system, and watched."""
