"""What several stages have to know of an operator: written once."""
