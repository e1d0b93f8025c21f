"""A text encoder with ids, mask and segments, all with moving batch and length, that answers with a dict."""

import numpy as np
import onnxruntime as ort
import torch
import torch.onnx as onnx
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.segments = nn.Embedding(40, 16), nn.Embedding(2, 16)
        self.query, self.key, self.value = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 3)

    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.words(input_ids) + self.segments(token_type_ids)
        scores = self.query(x) @ self.key(x).transpose(1, 2) / 4.0
        scores = scores.masked_fill(attention_mask[:, None, :] == 0, -1e4)
        hidden = self.norm(x + scores.softmax(-1) @ self.value(x))
        return {"last_hidden_state": hidden, "logits": self.head(hidden[:, 0])}


model = Encoder().eval()
inputs = {
    "input_ids": torch.randint(0, 40, (1, 8)),
    "attention_mask": torch.ones(1, 8, dtype=torch.int64),
    "token_type_ids": torch.zeros(1, 8, dtype=torch.int64),
}
moving = {0: "batch_size", 1: "sequence_length"}
onnx.export(
    model,
    tuple(inputs.values()),
    f="encoder.onnx",
    input_names=list(inputs),
    output_names=["last_hidden_state", "logits"],
    dynamic_axes={**{name: moving for name in inputs}, "last_hidden_state": moving, "logits": {0: "batch_size"}},
    opset_version=14,
    do_constant_folding=True,
)
longer = {name: value.repeat(3, 2) for name, value in inputs.items()}
hidden, logits = ort.InferenceSession("encoder.onnx").run(None, {name: value.numpy() for name, value in longer.items()})
want = model(**longer)
assert hidden.shape == (3, 16, 16)
np.testing.assert_allclose(logits, want["logits"].detach().numpy(), atol=1e-4)
np.testing.assert_allclose(hidden, want["last_hidden_state"].detach().numpy(), atol=1e-4)
