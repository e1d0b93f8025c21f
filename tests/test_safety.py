"""Nothing of the user's is changed or lost: the model, the generators, patched globals, the old file."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings
import weakref
from pathlib import Path

import numpy as np
import onnx
import psutil
import pytest
import torch
import torch._dynamo  # replaces torch.manual_seed once, when it is first imported
from torch import nn

import torchferry
from torchferry import eager, files
from torchferry.deadline import TookTooLong, time_limit
from torchferry.foreign import onnxruntime as ort
from torchferry.progress import Event
from torchferry.worker import Worker


class Keeper(nn.Module):
    """Has one of everything that an export might disturb."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm, self.drop = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.1)
        self.register_buffer("calls", torch.zeros(()))
        self.fc.weight.requires_grad_(False)
        self.seen: list[int] = []
        self.fc.register_forward_hook(lambda m, i, o: None)
        self.norm.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(1)
        self.cached = x
        return self.drop(self.norm(self.fc(x)))


class Failing(Keeper):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        return y if y.sum().item() > 1e9 and str(y) else torch.from_numpy(np.sort(y.detach().numpy()))


def fingerprint(model: Keeper) -> dict[str, object]:
    return {
        "modes": [(n, m.training) for n, m in model.named_modules()],
        "weights": {n: t.clone() for n, t in model.state_dict().items()},
        "grads": [(n, p.requires_grad) for n, p in model.named_parameters()],
        "hooks": [len(m._forward_hooks) for m in model.modules()],
        "attributes": sorted(vars(model)),
        "seen": list(model.seen),
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state()[1],
        "python": random.getstate(),
    }


def same(a: object, b: object) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)  # type: ignore[arg-type]
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)  # type: ignore[arg-type]
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())  # type: ignore[attr-defined, index]
    return a == b


def patched_globals() -> dict[str, int]:
    """Return the identity of every function of torch that an exporter is known to patch, and then some."""
    import torch.nn.functional as F

    found = {}
    for space in (torch, torch.Tensor, F, nn.Module, torch.onnx, torch.compiler, np, random, torch.distributions.Distribution):
        for name in dir(space):
            if not name.startswith("__"):
                value = getattr(space, name, None)
                if callable(value) and not isinstance(value, type):
                    found[f"{space.__name__}.{name}"] = id(vars(space).get(name, None))
    return found


@pytest.mark.parametrize("make", [Keeper, Failing], ids=["success", "failure"])
def test_the_model_and_the_generators_are_as_before(tmp_path: Path, make: type[Keeper]) -> None:
    torch.manual_seed(3)
    model = make()
    before, globals_before = fingerprint(model), patched_globals()
    torchferry.export(model, (torch.randn(3, 4),), tmp_path / "m.onnx", check=False)
    torch.set_rng_state(before["torch"])  # the line above drew the example itself
    after = fingerprint(model)
    assert [k for k in before if not same(before[k], after[k])] == []
    assert patched_globals() == globals_before


def test_a_bound_method_s_model_is_as_before(tmp_path: Path) -> None:
    class Encoder(Keeper):
        def encode(self, x: torch.Tensor) -> torch.Tensor:
            return self.forward(x) * 2

    model = Encoder().eval()
    before = fingerprint(model)
    assert torchferry.export(model.encode, (torch.ones(3, 4),), tmp_path / "m.onnx", check=False).diagnoses is not None
    after = fingerprint(model)
    assert [k for k in before if not same(before[k], after[k])] == []


def test_a_model_survives_ctrl_c_at_any_stage_and_the_old_file_stays(tmp_path: Path) -> None:
    target = tmp_path / "m.onnx"
    target.write_bytes(b"the old file")
    for stage in ("inputs", "capture", "translate", "check", "verify"):
        model = Keeper()
        before, globals_before = fingerprint(model), patched_globals()

        def interrupt(event: Event, stage: str = stage) -> None:
            if event.stage == stage and event.kind == "begin":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            torchferry.export(model, (torch.ones(3, 4),), target, progress=interrupt)
        after = fingerprint(model)
        assert [k for k in before if not same(before[k], after[k])] == []
        assert patched_globals() == globals_before
        assert target.read_bytes() == b"the old file"
        assert os.listdir(tmp_path) == ["m.onnx"], "debris was left"


def test_a_failed_export_leaves_the_old_file_and_no_debris(tmp_path: Path) -> None:
    target = tmp_path / "m.onnx"
    target.write_bytes(b"the old file")
    result = torchferry.export(Failing(), (torch.randn(3, 4),), target, check=False)
    assert not result.ok
    assert result.path is None
    assert target.read_bytes() == b"the old file"
    assert os.listdir(tmp_path) == ["m.onnx"]


def test_a_read_only_target_is_refused_before_any_work(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    target = tmp_path / "m.onnx"
    target.write_bytes(b"the old file")
    target.chmod(stat.S_IREAD)
    with pytest.raises(torchferry.UsageError, match="read-only"):
        torchferry.export(Keeper(), (torch.randn(3, 4),), target)


@pytest.mark.parametrize("name", ["model.json", "model.TEXTPROTO"])
def test_a_name_by_which_onnx_would_write_text_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(torchferry.UsageError, match=r"name it `.*model\.onnx`"):
        torchferry.export(nn.Identity(), (torch.ones(2),), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_what_a_killed_run_left_is_swept_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / f"{files.PREFIX}abc"
    left.mkdir()
    (left / "half.onnx").write_bytes(b"half")
    with files.workspace(near=tmp_path / "m.onnx"):
        pass
    assert os.listdir(tmp_path) == []


def test_the_library_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    torchferry.export(nn.Linear(3, 2), (torch.randn(2, 3),), tmp_path / "m.onnx")
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_a_runtime_that_dies_is_an_answer_and_the_next_run_works(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(ort._one_node_model(8, 17))
    feeds = {"x": np.ones(1, np.float32)}
    with Worker() as worker:
        key = worker.open(path)
        assert isinstance(key, str)
        assert worker._process is not None
        worker._process.kill()
        assert worker.run(key, feeds).type_name == "ProcessDied"  # type: ignore[union-attr]
        assert worker.run(key, feeds) == [np.ones(1, np.float32)]


def test_a_runtime_that_hangs_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(ort._one_node_model(8, 17))
    with Worker(time_limit=30) as worker:
        key = worker.open(path)
        assert isinstance(key, str)
        assert worker._process is not None
        os.kill(worker._process.pid, 19)  # SIGSTOP: it is there and says nothing
        worker.time_limit = 0.2
        assert worker.run(key, {"x": np.ones(1, np.float32)}).type_name == "TimeLimit"  # type: ignore[union-attr]


class Endless(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while x.abs().max() > 1:
            x = x / 2
        return x


def test_a_model_that_never_ends_on_some_input_is_asked_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager.calls, "PATIENCE", 0.3)
    with time_limit(60, "the test"):
        with pytest.raises(eager.NoAnswer):
            eager.call_on_made_input(Endless(), (torch.full((2,), torch.inf),))
        left = signal.getitimer(signal.ITIMER_REAL)[0]
    assert 50 < left < 60, "the limit around it must go on"


class Warner(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        warnings.warn("an old habit", stacklevel=1)
        return x * 2


def test_what_libraries_warn_of_goes_to_the_log_and_not_to_the_screen(caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings(record=True) as shown, caplog.at_level("INFO", logger="torchferry"):
        warnings.simplefilter("always")
        before = warnings.showwarning
        result = torchferry.export(Warner(), (torch.randn(2, 3),))
        assert warnings.showwarning is before
    assert result.ok
    assert [str(w.message) for w in shown] == []
    assert any("an old habit" in record.getMessage() for record in caplog.records)


def test_torchs_own_functions_are_back_after_a_call_that_makes_them_stricter() -> None:
    before = torch.ctc_loss

    class Nested(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            outside = torch.ctc_loss
            eager.call_on_made_input(nn.Identity(), (x[None],))
            assert torch.ctc_loss is outside is not before
            assert "lstm" in vars(torch._VF)
            return (x,)

    eager.call_on_made_input(Nested(), (torch.ones(2),))
    assert torch.ctc_loss is before
    assert "lstm" not in vars(torch._VF)
    assert callable(torch._VF.lstm)


ENDLESS = """<ir_version: 8, opset_import: ["": 18]> g (float x) => (float y) {
    rounds = Constant <value = int64 {9223372036854775807}> ()
    on = Constant <value = bool {1}> ()
    y = Loop (rounds, on, x) <body = body (int64 i, bool k, float a) => (bool m, float b) { m = Identity (k) b = Neg (a) }>
}"""


def test_a_run_that_never_ends_does_not_outlive_whoever_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / "endless.onnx").write_bytes(onnx.parser.parse_model(ENDLESS).SerializeToString())
    script = """
import threading
import numpy as np
from torchferry.worker import Worker
with Worker() as worker:
    key = worker.open("endless.onnx")
    threading.Timer(2.0, print, [worker._process.pid], {"flush": True}).start()  # by then it runs
    worker.run(key, {"x": np.ones((), np.float32)})
"""
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    gone, alive = psutil.wait_procs([child], timeout=60)
    assert gone or alive[0].status() == psutil.STATUS_ZOMBIE  # nobody may be there to bury it


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_time_limit_that_is_lost_in_a_callback_comes_again() -> None:
    class Thing:
        pass

    lost: list[bool] = []

    def callback(_: object) -> None:  # Python drops what is raised in here
        if not lost:
            lost.append(True)
            time.sleep(5)

    def endless() -> None:
        thing = Thing()
        kept = weakref.ref(thing, callback)
        del thing
        while kept() is None:
            pass

    with pytest.raises(TookTooLong), time_limit(0.2, "the block", again=0.2):
        endless()
    assert lost


def test_a_time_limit_in_a_thread_leaves_the_process_fit_for_a_debugger() -> None:
    script = """
import sys, threading
from torchferry.deadline import time_limit

def limited():
    with time_limit(60, "a block"):
        pass

thread = threading.Thread(target=limited)
thread.start()
thread.join()
sys.settrace(lambda *event: None)
limited()
sys.settrace(None)
print("still here")
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "still here\n"


def test_a_time_limit_in_a_thread_breaks_off_what_hangs_and_never_what_comes_after() -> None:
    told: list[object] = []

    def rounds() -> None:
        for _ in range(300):
            try:
                with time_limit(0.002, "the block", again=0.0001):
                    until = time.monotonic() + 0.002  # ends as the alarm comes
                    while time.monotonic() < until:
                        pass
            except TookTooLong as error:
                told.append(str(error))
        try:
            time.sleep(0.05)
            with time_limit(0.05, "the block"):
                while True:
                    pass
        except TookTooLong as error:
            told.append(error)

    thread = threading.Thread(target=rounds)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert isinstance(told[-1], TookTooLong)
