"""Other calls than the example: what each input is for, and the ways to fill it."""
