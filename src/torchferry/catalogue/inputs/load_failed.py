"""INP016: load-failed."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.catalogue.finding_rule import example_folder
from torchferry.catalogue.rule import Rule
from torchferry.records import Case, Diagnosis, Job, Location, findings


class LoadFailed(Rule):
    """What was named raised while the model was being made

    ## What happened
    The command line makes the model before anything is converted: it imports your module and calls what you named, or reads the
    directory after `hf:`. Your code, or the library that reads the weights, raised on the way.
    ## Do instead
    Look at the line named: it is the innermost one of your own. Run it on its own to see more; `-v` shows the whole traceback.
    """

    code, stage, severity, since = "INP016", "inputs", "error", "0.2"

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in case.findings(findings.ModelNotLoaded):
            yield Diagnosis(
                self.code,
                f"{finding.error}: {finding.text}",
                help="run it on its own to see more, or add -v for the whole traceback",
                location=finding.location or Location(),
                title=f"`{finding.name}` raised while the model was being made",
            )


SHOWN = {
    "bad": """```python
def model():
    raise RuntimeError("no weights here")
```

```sh
torchferry export broken.py:model -o model.onnx
```""",
    "good": """```python
import torch

def model():
    return torch.nn.Linear(2, 2), (torch.ones(1, 2),)
```

```sh
torchferry export whole.py:model -o model.onnx
```""",
}


def bad() -> Case:
    from torchferry.cli.load import LoadFailed, load

    path = example_folder() / "broken.py"
    path.write_text("def model():\n    raise RuntimeError('no weights here')\n")
    try:
        load(f"{path}:model")
    except LoadFailed as failed:
        return failed.result("export", 0.0).history.best
    raise AssertionError("it was loaded")


def good() -> Job:
    from torchferry.cli.load import load

    path = example_folder() / "whole.py"
    path.write_text("import torch\n\ndef model():\n    return torch.nn.Linear(2, 2), (torch.ones(1, 2),)\n")
    loaded = load(f"{path}:model")
    return Job(loaded.model, loaded.args)
