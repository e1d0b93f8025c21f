"""Where the time of a run goes: by operator, by node, and by the PyTorch module and line that each node came from.

Fusion renames nodes, but what a fused node gives still bears the name that the file gave it: through that name the optimised
graph, which onnxruntime writes out on request, is mapped back to the file and to the source lines it carries.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from torchferry.check.reading import graph, source_line
from torchferry.check.running.feeds import declared_by, fit
from torchferry.escape import line
from torchferry.foreign import onnxruntime as ort
from torchferry.records import Location


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: what, how often it ran in one run, the microseconds that took, and the part of the whole."""

    name: str
    calls: float
    microseconds: float
    share: float


@dataclass(frozen=True, slots=True)
class Profile:
    """The tables, each sorted by time, and the microseconds of one whole run."""

    microseconds: float
    by_op: tuple[Row, ...]
    by_node: tuple[Row, ...]
    by_module: tuple[Row, ...]
    by_line: tuple[Row, ...]
    runs: int = 1

    def __str__(self) -> str:
        tables = (("operator", self.by_op), ("node", self.by_node), ("module", self.by_module), ("source line", self.by_line))
        head = f"{self.microseconds:,.0f} us for one run (mean of {self.runs})"
        return "\n\n".join([head, *(_table(title, rows) for title, rows in tables if rows)])


def _table(title: str, rows: Sequence[Row], most: int = 15) -> str:
    shown = [(line(r.name), r) for r in rows[:most]]
    width = max([len(title), *(len(name) for name, _ in shown)])
    lines = [f"{title:<{width}}  {'calls':>7}  {'us':>10}  {'share':>6}"]
    lines += [f"{name:<{width}}  {r.calls:>7.6g}  {r.microseconds:>10,.1f}  {r.share:>6.1%}" for name, r in shown]
    return "\n".join(lines + ([f"... and {len(rows) - most} more"] if len(rows) > most else []))


@dataclass(slots=True)
class _Tally:
    calls: dict[str, int] = field(default_factory=dict)
    time: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, microseconds: float) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1
        self.time[name] = self.time.get(name, 0.0) + microseconds

    def rows(self, runs: int) -> tuple[Row, ...]:
        whole = sum(self.time.values()) or 1.0
        names = sorted(self.time, key=lambda n: -self.time[n])
        return tuple(Row(n, self.calls[n] / runs, self.time[n] / runs, self.time[n] / whole) for n in names)


def profile(model: Any, feeds: Sequence[Mapping[str, Any]], runs: int, open_session: Any) -> Profile:
    """Return where the time goes in `runs` runs of each feed. `open_session(options)` opens the session as the user did."""
    with tempfile.TemporaryDirectory(prefix="torchferry-profile-") as folder:
        options = ort.silent_options()
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "run")
        options.optimized_model_filepath = str(Path(folder) / "optimised.onnx")
        session = open_session(options)
        ready = [fit(declared_by(session), feed).feed for feed in feeds]
        for feed in ready:  # the first run allocates
            ort.run(session, feed)
        for _ in range(runs):
            for feed in ready:
                ort.run(session, feed)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        places = _places(model, Path(folder) / "optimised.onnx")
    return _summed(events, places, len(ready), runs * len(ready))


def _places(model: Any, optimised: Path) -> dict[str, Location]:
    """Return where each node of the optimised graph came from, found by the names of what it gives or reads."""
    original = onnx.load_model_from_string(model) if isinstance(model, bytes) else onnx.load(str(model), load_external_data=False)
    by_value = {
        o: place for p in graph.places(original) if (place := source_line.of(p.node)) is not None for o in p.node.output if o
    }
    by_value |= {
        i: by_value[o]
        for p in graph.places(original)
        for o in p.node.output
        for i in p.node.input
        if o in by_value and i not in by_value
    }
    if not optimised.exists():
        return {}
    found = {}
    for p in graph.places(onnx.load(str(optimised), load_external_data=False)):
        known = next((by_value[n] for n in (*p.node.output, *reversed(p.node.input)) if n in by_value), None)
        if known is not None:
            found[p.node.name] = known
    return found


def _summed(events: list[dict[str, Any]], places: Mapping[str, Location], warm: int, runs: int) -> Profile:
    ops, nodes, modules, lines, whole = _Tally(), _Tally(), _Tally(), _Tally(), 0.0
    begins = sorted(e["ts"] for e in events if e.get("name") == "model_run")
    since = begins[warm] if len(begins) > warm else 0
    for event in events:
        if event.get("ts", 0) < since:
            continue
        if event.get("name") == "model_run":
            whole += event["dur"]
        if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time"):
            continue
        name, spent = event["name"].removesuffix("_kernel_time"), float(event["dur"])
        place = places.get(name)
        ops.add(event["args"].get("op_name", "?"), spent)
        nodes.add(name, spent)
        modules.add(place.module_path if place and place.module_path else "(no module)", spent)
        lines.add(f"{place.file}:{place.line}" if place and place.line else "(no line)", spent)
    return Profile(whole / runs, ops.rows(runs), nodes.rows(runs), modules.rows(runs), lines.rows(runs), runs)
