"""The two sides of a comparison run: the eager module with a trace of its operators, and the file in a process of its own."""
