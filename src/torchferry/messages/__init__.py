"""What an error of torch, torch.onnx, onnxruntime, onnx, optimum or another runtime means, from its text alone.

People have a message more often than a model. What is told here is what such a message says of its cause, by the mechanism that
raises it; the facts (operator, input, sizes, versions) are read out of it. What no mechanism explains is unknown, and said to be.

mechanism   one cause: how its messages look, what it means, what to do
capture     torch.export and dynamo
tracing     torch.jit.trace and what it warns of
converting  torch.onnx: operators, attributes, arguments
opening     onnx and onnxruntime open a file
running     onnxruntime runs it
comparing   the numbers are not those of the model
elsewhere   TensorRT, OpenVINO and others take the file
installing  packages and libraries that do not fit
"""

from torchferry.messages.explained import Explained, explained

__all__ = ["Explained", "explained"]
