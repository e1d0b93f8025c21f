"""An operator on its way, a folder for each step: what is done to a family has the same name in each of them.

captured/    functions of torch in a form that a capture can follow: sizes keep moving, and no value is looked at
prepared/    modules, and operators of a captured program, rewritten as what can be translated
decomposed/  operators of the program that torch.onnx lacks or gets wrong, in others that it has
passes/      nodes of the ONNX graph in a better form
lowered/     nodes in the words of an older opset, or of a newer one

Beside the folders stands what several of them need. Mends of files from elsewhere are the check stage's own (`check/passes/`).
"""
