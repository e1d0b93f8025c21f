"""What a verdict stands on: weights found or reached, outputs and branches seen, redrawn weights, and a mutation score."""
