"""Arguments by name, as the last dict of the tuple that the old exporter takes, and as `kwargs`."""

import onnxruntime as ort
import torch
import torch.onnx as onnx


class Scaled(torch.nn.Module):
    def forward(self, x, *, scale=None, shift=None):
        x = x if scale is None else x * scale
        return x if shift is None else x + shift


x, scale = torch.randn(2, 3), torch.randn(3)
onnx.export(Scaled(), (x, {"scale": scale}), "old.onnx")
onnx.export(Scaled(), (x,), "new.onnx", kwargs={"scale": scale})
for path in ("old.onnx", "new.onnx"):
    session = ort.InferenceSession(path)
    assert [i.name for i in session.get_inputs()] == ["x", "scale"]
    (got,) = session.run(None, {"x": x.numpy(), "scale": scale.numpy()})
    torch.testing.assert_close(torch.from_numpy(got), x * scale)
