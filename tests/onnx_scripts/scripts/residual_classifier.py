"""A small residual network for pictures, exported in eval mode by the old exporter's words, opset 13."""

import numpy as np
import onnxruntime as ort
import torch
import torch.nn as nn
import torch.onnx


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.two = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return torch.relu(x + self.two(torch.relu(self.norm(self.one(x)))))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2)
        self.body = nn.Sequential(Block(8), Block(8))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.drop(torch.flatten(self.pool(self.body(self.stem(x))), 1)))


model = Classifier()
dummy = torch.randn(2, 3, 16, 16)
torch.onnx.export(
    model,
    dummy,
    "classifier.onnx",
    verbose=False,
    dynamo=False,
    training=torch.onnx.TrainingMode.EVAL,
    opset_version=13,
    input_names=["image"],
    output_names=["scores"],
)
assert model.training
session = ort.InferenceSession("classifier.onnx")
model.eval()
(scores,) = session.run(["scores"], {"image": dummy.numpy()})
assert np.allclose(scores, model(dummy).detach().numpy(), atol=1e-4)
