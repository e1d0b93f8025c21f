"""Sizes of an example that were baked into a graph: what each constant may have been, and which reading makes the file run."""
