"""The doors to what other packages keep private, and to what one system or Python alone has: one for each theme, no other file.

Each door says what it relies on, and what to turn to when that moves; all of it was held against torch 2.13, onnxruntime 1.31
and transformers 5.22, and "since" tells the first release where it is known. The rest of torchferry sees names that look public.
A door imports nothing of torchferry's but errors and other doors. What a release no longer has raises `ForeignApiMoved` where
the door is first imported, and `tests/foreign` says which door it was.
"""
