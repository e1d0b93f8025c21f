"""What holds for every report: it round-trips, fits, escapes, reads in ASCII, and never passes off a failure as a success."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console
from stories import STORIES, different, refused, verified

from torchferry.errors import FileRefused, UsageError
from torchferry.records import Case, Diagnosis, Fault, History, Job, Step
from torchferry.report import from_json, html, json_, render, text
from torchferry.report.next_steps import following, snippet
from torchferry.report.view import Moving, Tensor, View, see
from torchferry.result import Result

FAILURES = ("different-file", "different-export", "refused", "unsound-file", "mendable-file", "no-evidence")


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("format", ["text", "markdown", "html", "sarif", "json"])
def test_a_report_read_back_from_json_reads_the_same_in_every_format(story: str, format: str) -> None:
    result = STORIES[story]()
    again = from_json(render(result, "json"))
    assert again == from_json(render(again, "json"))
    assert render(again, format) == render(result, format)


def test_json_is_strict_even_where_a_difference_is_infinite() -> None:
    written = render(different(), "json")
    data = json.loads(written, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert data["runs"][-2]["worst"] == "inf"
    assert math.isinf(json_.from_json(data).runs[-2].worst)


def test_json_of_something_else_is_refused() -> None:
    with pytest.raises(UsageError, match="not a report"):
        from_json('{"schema": "other"}')


def test_json_that_is_no_report_of_ours_is_refused_and_its_sizes_are_no_code(tmp_path: Path) -> None:
    held = json.loads(render(STORIES["verified"](), "json"))
    for change in ({"ok": "yes"}, {"inputs": 3}, {"more": 1}, {"runs": [{}]}):
        with pytest.raises(FileRefused, match="`the report` is refused"):
            from_json(json.dumps({**held, **change}))
    harm = f"__import__('pathlib').Path({str(tmp_path / 'made')!r}).write_text('harm')"
    for size in (harm, "9**9**9**9", "-" * 100_000 + "1", "n // 0"):
        held["inputs"][0]["shape"][0] = size
        assert "session.run" in render(from_json(json.dumps(held)), "text")
    assert not (tmp_path / "made").exists()


def test_an_agreeing_trial_without_a_finite_measure_is_not_the_worst() -> None:
    assert "inf" not in render(verified(), "text")
    assert render(verified(), "html").count("<circle") == 4


def test_an_unknown_format_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean `markdown`"):
        render(verified(), "markdwon")


@pytest.mark.parametrize("story", STORIES)
def test_text_is_ascii_and_fits_a_screen(story: str) -> None:
    written = render(STORIES[story](), "text")
    assert written.isascii()
    assert len(written.splitlines()) <= 40
    assert max(map(len, written.splitlines())) <= 100


def test_text_wraps_to_a_narrow_terminal() -> None:
    assert max(map(len, text.render(different(), width=60).splitlines())) <= 75  # a source line and a path are left whole


def test_colours_change_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    Console(no_color=True, width=200, highlight=False, soft_wrap=True).print(text.styled(different()))
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == render(different(), "text").splitlines()


def test_the_root_cause_comes_first_with_its_line_marked() -> None:
    lines = render(refused(), "text").splitlines()
    assert lines[2].startswith("error[CAP003]")
    at = lines.index("   7 |   if x.sum() > 0:")
    assert lines[at + 1] == "     |   ^^^^^^^^^^^^^^^"


@pytest.mark.parametrize("story", FAILURES)
@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_a_failure_is_never_called_verified(story: str, format: str) -> None:
    written = render(STORIES[story](), format)
    assert "verified:" not in written.replace("not verified:", "")
    assert "computes what the model computes" not in written
    assert "loads and runs" not in written


def test_a_failure_that_no_rule_explains_still_says_what_was_seen() -> None:
    unnamed = different("export")
    case = replace(unnamed.history.best, diagnoses=())
    written = render(replace(unnamed, history=History((case,), case)), "text")
    assert "off by 0.031 at [0, 17]" in written
    fault = Fault("RuntimeError", "the last straw", cause=Fault("ValueError", "the first"))
    case = Case(Job(), (Step("translate", fault=fault),))
    written = render(Result("export", History((case,), case)), "text")
    assert "RuntimeError: the last straw" in written
    assert "ValueError: the first" in written


def test_a_page_of_foreign_text_is_cut_to_what_helps() -> None:
    found = Diagnosis("CAP009", "word " * 5000, evidence=tuple(f"fact {n}" for n in range(300)), title="too much said")
    case = Case(Job(), (Step("capture", fault=Fault("E", "x")),), (found,) * 9)
    assert len(render(Result("export", History((case,), case)), "text").splitlines()) < 60


class _Tags(HTMLParser):
    """Collects what would be fetched or run, and checks that tags are closed in order."""

    VOID = ("meta", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("story", STORIES)
def test_the_page_is_well_formed_and_needs_nothing_from_anywhere(story: str) -> None:
    page = render(STORIES[story](), "html")
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.fetched == []
    assert not {"script", "link", "img", "iframe"} & tags.seen
    assert "http" not in page
    assert "@import" not in page
    assert "url(" not in page


def test_the_users_text_cannot_become_markup() -> None:
    evil = '<script>alert("x")</script>'
    found = Diagnosis("CAP009", evil, evil, evidence=(evil,), title=evil)
    case = Case(Job(), (Step("capture", fault=Fault("E", "x")),), (found,))
    result = Result("export", History((case,), case), Path(f"{evil}.onnx"))
    assert "<script" not in render(result, "html")
    assert "<script" not in html.notebook(result)
    assert "<script" not in render(result, "markdown").replace(f"`{evil}.onnx`", "")


def test_the_snippet_feeds_sizes_that_the_file_takes() -> None:
    view = see(verified())
    names: dict[str, object] = {}
    feeds: dict[str, object] = {}

    class Session:
        def __init__(self, path: str) -> None:
            names["path"] = path

        def run(self, outputs: None, given: dict[str, object]) -> None:
            feeds.update(given)

    code = snippet(view).replace("import numpy as np, onnxruntime as ort", "import numpy as np")
    exec(code, {"ort": type("ort", (), {"InferenceSession": Session})})
    assert names["path"] == "build/model.onnx"
    shapes = {name: getattr(array, "shape", None) for name, array in feeds.items()}
    assert shapes == {"input_ids": (2, 2), "attention_mask": (2, 10), "pixel_values": (2, 3, 32)}


def test_the_snippet_respects_bounds_and_multiples() -> None:
    moving = (Moving(("x[0]",), "a", 5, 9), Moving(("x[1]",), "b", 1, 1), Moving(("x[2]",), "c", 1, None, 32))
    view = View("export", True, "", path="m.onnx", inputs=(Tensor("x", "float32", ("a", "b", "c", "2*c + 1")),), moving=moving)
    assert "np.zeros((5, 1, 32, 65)" in snippet(view)


def test_the_snippet_feeds_bfloat16_as_tensors_since_numpy_has_none() -> None:
    view = View("export", True, "", path="m.onnx", inputs=(Tensor("x", "bfloat16", ("2", "3")), Tensor("ids", "int64", ("2",))))
    assert snippet(view).splitlines() == [
        "import torch, torchferry as ort",
        'session = ort.InferenceSession("m.onnx")',
        "outputs = session.run(None, {",
        '    "x": torch.zeros((2, 3), dtype=torch.bfloat16),',
        '    "ids": torch.zeros((2,), dtype=torch.int64),',
        "})",
    ]


def test_what_to_do_next_names_each_code_once() -> None:
    (only,) = following(see(refused()))
    assert only.code == "torchferry explain CAP003\ntorchferry explain TRN001"
