"""Models in the wrappers that training leaves them in."""

import onnxruntime as ort
import torch
import torch.onnx
from torch import nn

core = nn.Sequential(nn.Linear(3, 3), nn.GELU()).eval()
x = torch.randn(2, 3)
for name, wrapped in (("parallel", nn.DataParallel(core)), ("compiled", torch.compile(core))):
    torch.onnx.export(wrapped, (x,), f"{name}.onnx", input_names=["x"], dynamic_axes={"x": {0: "n"}})
    (y,) = ort.InferenceSession(f"{name}.onnx").run(None, {"x": torch.ones(7, 3).numpy()})
    torch.testing.assert_close(torch.from_numpy(y), core(torch.ones(7, 3)), rtol=1e-4, atol=1e-5)
