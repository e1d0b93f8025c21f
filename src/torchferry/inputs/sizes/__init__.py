"""Which sizes move, which move together, and how far: found by trying the eager model."""
