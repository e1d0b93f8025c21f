"""An LSTM over sentences of any number and length, with its states as outputs."""

import numpy as np
import onnxruntime as ort
import torch
from torch import nn
from torch.onnx import export


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(30, 8)
        self.lstm = nn.LSTM(8, 6, batch_first=True, bidirectional=True)
        self.head = nn.Linear(12, 4)

    def forward(self, tokens):
        out, (h, c) = self.lstm(self.table(tokens))
        return self.head(out), h, c


model = Tagger().eval()
tokens = torch.randint(0, 30, (2, 5))
axes = {"tokens": {0: "batch", 1: "length"}, "tags": {0: "batch", 1: "length"}, "h": {1: "batch"}, "c": {1: "batch"}}
export(
    model, (tokens,), "tagger.onnx", input_names=["tokens"], output_names=["tags", "h", "c"], dynamic_axes=axes, opset_version=17
)
other = torch.randint(0, 30, (3, 9))
got = ort.InferenceSession("tagger.onnx").run(["tags", "h", "c"], {"tokens": other.numpy()})
for a, b in zip(got, model(other)[:1] + tuple(model(other)[1:]), strict=True):
    np.testing.assert_allclose(a, b.detach().numpy(), atol=1e-5)
