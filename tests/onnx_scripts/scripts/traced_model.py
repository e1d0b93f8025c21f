"""A traced model and a scripted one with a loop, in the old exporter's words."""

import numpy as np
import onnxruntime as ort
import torch
import torch.onnx


class Loop(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        for step in range(5):
            x = torch.tanh(self.fc(x))
            if step == 2:
                break
        return x


x = torch.randn(2, 4)
model = Loop().eval()
for name, compiled in (("traced", torch.jit.trace(model, (x,))), ("scripted", torch.jit.script(model))):
    torch.onnx.export(compiled, (x,), f"{name}.onnx", input_names=["x"], output_names=["y"], dynamo=False)
    (y,) = ort.InferenceSession(f"{name}.onnx").run(None, {"x": x.numpy()})
    np.testing.assert_allclose(y, model(x).detach().numpy(), atol=1e-5)
