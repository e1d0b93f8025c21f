"""Types and shapes worked out from the schemas, and where they contradict each other."""
