"""Inputs in a dict and a list, outputs in a tuple."""

import numpy as np
import onnxruntime as ort
import torch
import torch.onnx as onnx


class Fusion(torch.nn.Module):
    def forward(self, batch, extras):
        total = batch["left"] + batch["right"]
        return total, total * extras[0] - extras[1]


batch = {"left": torch.randn(2, 3), "right": torch.randn(2, 3)}
extras = [torch.randn(2, 3), torch.randn(2, 3)]
onnx.export(Fusion(), (batch, extras), "fusion.onnx", input_names=["l", "r", "a", "b"], output_names=["sum", "mix"])
feeds = dict(zip(["l", "r", "a", "b"], [*batch.values(), *extras], strict=True))
total, mix = ort.InferenceSession("fusion.onnx").run(["sum", "mix"], {k: v.numpy() for k, v in feeds.items()})
want = Fusion()(batch, extras)
np.testing.assert_allclose(total, want[0].numpy(), atol=1e-6)
np.testing.assert_allclose(mix, want[1].numpy(), atol=1e-6)
