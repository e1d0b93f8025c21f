"""Reading a file: what it is, whether it is whole, and ways to walk its graph."""
