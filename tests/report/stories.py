"""Results made by hand, one for each kind of ending, with every record that a report can meet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from torchferry.edits.check import CoerceFeeds, StampOpset
from torchferry.edits.inputs import Narrow
from torchferry.records import (
    Bound,
    Case,
    Checked,
    Diagnosis,
    Difference,
    Dim,
    Edit,
    Fault,
    History,
    Job,
    Location,
    Repair,
    Signature,
    Step,
    TensorSpec,
    Tolerance,
    Translated,
    Trial,
    Verified,
)
from torchferry.records.findings import SizeGivenUp
from torchferry.result import Result


@dataclass(frozen=True, slots=True)
class FlattenCache(Edit):
    """A stranger's edit: reports and recipes print it like one of ours."""

    stage, name = "inputs", "flatten-cache"
    at: int


SOURCE = Path(__file__).with_name("a_users_model.py")
TOLERANCE = Tolerance(1e-5, 1e-5, "float32, sums over at most 64 terms, 4 layers deep")
IDS = TensorSpec("input_ids", "int64", ("batch_size", "sequence_length"))
MASK = TensorSpec("attention_mask", "int64", ("batch_size", "past_length + sequence_length"))
PIXELS = TensorSpec("pixel_values", "float32", ("batch_size", 3, 32), ("", "conv1 wants 3 channels", ""))
LOGITS = TensorSpec("logits", "float32", ("batch_size", "sequence_length", 1000))
TOO_NEW = Diagnosis(
    "CHK002",
    "the file says opset 28, and onnxruntime 1.31.1 takes up to 26",
    "write it again with `torchferry check old.onnx -o new.onnx`",
    Location(onnx_node="node_Add_1", input_name="x"),
    slug="opset-too-new",
    title="the opset is newer than the runtime",
)
DIMS = (
    Dim("batch_size"),
    Dim("sequence_length", 1, 1024, why="wpe has 1024 rows"),
    Dim("past_length", 0, 512, multiple_of=8),
)


def _bound() -> Bound:
    signature = Signature((IDS, MASK, PIXELS), DIMS, {"use_cache": "True"})
    return Bound(None, (), signature, ("logits",), None, vary=lambda *_: (), feeds=lambda *_: {})


def _steps(trials: tuple[Trial, ...]) -> tuple[Step, ...]:
    ranges = {"batch_size": (1, None), "sequence_length": (1, 1024), "past_length": (0, 256)}
    return (
        Step("inputs", _bound(), seconds=0.31, notes=("`pixel_values` came as a numpy array and was taken as a tensor",)),
        Step("capture", object(), seconds=4.12),
        Step("translate", Translated(Path("w/model.onnx"), 18, (IDS, MASK, PIXELS), (LOGITS,)), seconds=3.9),
        Step("check", Checked(18, 10, 1_304_000, "onnxruntime 1.31.1"), seconds=0.2),
        Step("verify", Verified(trials, TOLERANCE, ranges), seconds=6.02),
    )


def _trial(name: str, values: str, batch: int, outcome: str = "agree", worst: float = 0.03, **more: object) -> Trial:
    words = f"{name}, values={values}"
    return Trial(words, {"batch_size": batch}, values, 0, outcome, worst=worst, max_abs=worst * 1e-5, **more)  # type: ignore[arg-type]


AGREEING = (
    _trial("example", "example", 2, worst=0.0),
    _trial("batch_size=1", "random", 1),
    _trial("batch_size=3", "random", 3, worst=0.11),
    _trial("batch_size=3", "left-padded", 3, worst=0.004),
    _trial("batch_size=64", "large", 64, "eager-refused", note="IndexError: index out of range in self"),
    _trial("batch_size=2", "tiny", 2, "ill-conditioned"),
    _trial("batch_size=2", "huge", 2, worst=float("inf"), note="the model itself is not finite here"),
)


def verified() -> Result:
    """An export that was repaired once, and verified."""
    cache = Diagnosis(
        "CAP001",
        "`forward` returns a `DynamicCache`",
        "nothing to do",
        Location(str(SOURCE), 9),
        (),
        "cache-in-outputs",
        "a cache object among the outputs",
        fixed=True,
    )
    repair = Repair("CAP001", "the cache in the outputs is taken apart into tensors", FlattenCache(1))
    warning = Diagnosis(
        "INP004",
        "the model is in training mode, so dropout is part of the file",
        "call `model.eval()` first",
        Location(module_path="encoder.drop"),
        slug="training-mode",
        title="the model is in training mode",
        severity="warning",
    )
    note = Diagnosis(
        "NUM008", "`logits` differs at padded positions only", "nothing to do", title="only under padding", severity="note"
    )
    case = Case(Job(edits=(repair.edit,), opset=18), _steps(AGREEING), (warning, note))
    history = History((case,), case, (repair,), (repair,), (cache,))
    return Result("export", history, Path("build/model.onnx"), 15.13, 1_304_000)


def narrowed() -> Result:
    """An export that declares less than the model takes."""
    why = {"code": "CAP007", "why": "the captured program holds only while `sequence_length <= 10`"}
    where = Location("a_users_model.py", 12)
    given_up = SizeGivenUp("sequence_length", ("input_ids[1]",), "1..", "1..10", fixed=False, **why, location=where)
    edit = Narrow({"sequence_length": (1, 10, 1)}, **why, file=str(SOURCE), line=12)
    repair = Repair("INP020", "`sequence_length` declared as 1..10", edit)
    told = Diagnosis(
        "INP020",
        "`sequence_length` (input_ids[1]) is declared as 1..10, though the model takes 1..",
        'change the line that is named, or ask for the sizes that must hold: ranges={"sequence_length": (low, high)}',
        Location(str(SOURCE), 12),
        ("CAP007: the captured program holds only while `sequence_length <= 10`",),
        "size-given-up",
        "the file takes fewer sizes than the model",
        "warning",
    )
    first, *others = _steps(AGREEING)
    first = replace(first, findings=(given_up,))
    case = Case(Job(edits=(edit,)), (first, *others), (told,))
    return Result("export", History((case,), case, (repair,), (repair,)), Path("build/model.onnx"), 15.13, 1_304_000)


def different(kind: str = "verify") -> Result:
    """A file that is not the model."""
    off = Difference("logits", "value", "off by 0.031 at [0, 17], allowed 1e-05", 0.031, 0.2, (0, 17), 3100.0)
    shape = Difference("logits", "shape", "shape (1, 7, 1000), not (2, 7, 1000)", ratio=float("inf"))
    bad = (
        _trial("sequence_length=11", "random", 2, "differ", 3100.0, differences=(off,)),
        _trial("batch_size=2", "random", 2, "differ", float("inf"), differences=(shape,)),
        _trial("batch_size=5", "random", 5, "file-refused", 0.0, note="onnxruntime: 7 by 9"),
    )
    found = Diagnosis(
        "NUM001",
        "`logits` is off by 0.031 at [0, 17], allowed 1e-05, from `sequence_length` = 11 on",
        "make both sides of the branch with `torch.where`, or export the two lengths as two files",
        Location(str(SOURCE), 12, "encoder.blocks.0"),
        (
            "true only while sequence_length <= 10",
            "first different: node `node_Add_131`",
            "the smallest failing input has 11 tokens",
            "eager takes the other side of the branch at line 12",
            "the file was captured at length 5",
        ),
        "branch-frozen",
        "a branch on a size was frozen",
    )
    job = Job(onnx=Path("model.onnx")) if kind == "verify" else Job()
    case = Case(job, _steps((*AGREEING, *bad)), (found,))
    return Result(kind, History((case,), case), Path("model.onnx") if kind == "verify" else None, 9.9, 5_000)  # type: ignore[arg-type]


def refused() -> Result:
    """An export that stopped in capture, with more problems than fit on a screen."""
    first = Diagnosis(
        "CAP003",
        "`if` reads the value of `x.sum()`, which is not known while the model is captured",
        "choose between the two with `torch.where(x.sum() > 0, a, b)`, or use `torch.cond`",
        Location(str(SOURCE), 7, "encoder"),
        ("torch.export: Could not guard on data-dependent expression u0 > 0",),
        "branch-on-tensor-value",
        "a Python `if` reads the value of a tensor",
    )
    more = tuple(
        Diagnosis(
            "TRN001",
            f"`aten.{op}` has no translation",
            "register one with `torchferry.register_op`",
            Location(op=f"aten.{op}"),
            slug="no-translation",
            title=f"ONNX has no `{op}`",
        )
        for op in ("fft", "stft", "histc", "cholesky")
    )
    fault = Fault("GuardOnDataDependentSymNode", "Could not guard on data-dependent expression u0 > 0")
    case = Case(Job(), (Step("inputs", _bound(), seconds=0.2), Step("capture", fault=fault, seconds=1.4)), (first, *more))
    return Result("export", History((case,), case), None, 1.6)


def checked(*, ok: bool = True) -> Result:
    """A file without its model: sound, or not."""
    value = Checked(18, 10, 400, "onnxruntime 1.31.1", Path("old.onnx"), 2)
    case = Case(Job(onnx=Path("old.onnx")), (Step("check", value),), () if ok else (TOO_NEW,))
    return Result("check", History((case,), case), Path("old.onnx"), 0.4, 400)


def mendable(path: str = "old.onnx") -> Result:
    """A file that a repair on a copy of it has mended; `path` is where the mended one was written, if anywhere."""
    repair = Repair("CHK002", "stamp opset 26", StampOpset(26))
    first = Case(Job(onnx=Path("old.onnx")), (Step("check", Checked(28, 10, 400, "onnxruntime 1.31.1")),), (TOO_NEW,))
    value = Checked(26, 10, 400, "onnxruntime 1.31.1", Path("workspace/old.onnx"), 2)
    case = Case(first.job.plus(repair.edit), (Step("check", value),))
    history = History((first, case), case, (repair,), (repair,), (replace(TOO_NEW, fixed=True),))
    return Result("check", history, Path(path), 0.4, 400)


def fed_otherwise() -> Result:
    """A sound file whose feeds had to be changed to fit it."""
    repair = Repair("RUN004", "`x` is cast to int64", CoerceFeeds())
    value = Checked(18, 10, 400, "onnxruntime 1.31.1", Path("old.onnx"), 2)
    case = Case(Job(onnx=Path("old.onnx")), (Step("check", value),))
    return Result("check", History((case,), case, (repair,), (repair,)), Path("old.onnx"), 0.4, 400)


def random() -> Result:
    """An export whose only output is random by design."""
    case = Case(Job(), _steps((_trial("example", "example", 2, "random"), _trial("batch_size=3", "random", 3, "random"))))
    return Result("export", History((case,), case), Path("model.onnx"), 9.9, 5_000)


def no_evidence() -> Result:
    """A file of which nothing was shown, because the model refused every trial."""
    case = Case(Job(onnx=Path("model.onnx"), model=1), _steps((_trial("example", "example", 2, "eager-refused"),)))
    return Result("verify", History((case,), case), Path("model.onnx"), 9.9, 5_000)


STORIES = {
    "no-evidence": no_evidence,
    "random": random,
    "verified": verified,
    "narrowed": narrowed,
    "different-file": different,
    "different-export": lambda: different("export"),
    "refused": refused,
    "sound-file": checked,
    "unsound-file": lambda: checked(ok=False),
    "mendable-file": mendable,
    "mended-file": lambda: mendable("new.onnx"),
    "mended-feeds": fed_otherwise,
}
