"""The command line: words -> the same library calls; no logic. `main.py` is where it starts."""
