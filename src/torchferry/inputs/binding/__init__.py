"""The user's model and arguments brought into one flat form: tensors in by position, a tuple of tensors out."""
