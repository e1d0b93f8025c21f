"""What can be done to a Job, a frozen class for each: rules make them, and the stage that one names carries it out.

inputs, capture, translate, check, verify   the edits of each stage
stored                                      an edit as plain data, for recipes and reports, and back

An edit says all that there is to decide; whoever carries it out decides nothing. `job.edits_for(StampOpset)` gives those of a
class. This package imports neither torch nor onnx.
"""
