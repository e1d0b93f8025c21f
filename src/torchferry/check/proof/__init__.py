"""What shows a mend to be right where there is no model to ask: something was run, and the words of what; or it is a guess.

moved.py      sizes that were set free: asked of the file at the sizes that it had
    rows.py       each slice alone, in the file as it came, gives what it gives among others
    windows.py    each place of the outputs is given by the file as it came, from a part of what is fed
    stretched.py  each element twice gives its outputs twice; for axes that the file itself declares as free
    mixing.py     a likelier reading in which the size is one that a node mixes: then rows say nothing
evaluated.py  a file that no runtime opens: asked of the standard's own evaluator
stamped.py    another opset stamp: each node under both stamps
same_numbers.py   another type: the same numbers in it, and every type that would do gives the same
mends.py      which of these a graph pass needs
"""
