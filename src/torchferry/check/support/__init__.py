"""What the target implements: versions, operators, types, products of small integers."""
