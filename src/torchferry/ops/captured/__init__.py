"""Functions of torch in a form that a capture can follow: sizes keep moving, and no value is looked at.

`capture/patches/` puts them in the place of torch's own for as long as a model is captured.
"""
