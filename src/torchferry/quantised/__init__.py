"""Quantised modules as plain arithmetic: the same integers, kept in float tensors, in operators that can be captured.

unpacked    the weights taken out of torch's opaque packed objects
arithmetic  torch's own rounding, scale by scale
grid        a stand-in for a quantised tensor
operators   what each `quantized::` operator computes
recurrent   dynamically quantised LSTM, GRU and cells
fake        FakeQuantize modules of quantisation-aware training
audit       torch's kernels held against all that, on the numbers that they are given
"""
