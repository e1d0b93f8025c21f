"""Every text of a report in the hands of somebody who means ill: in every field, of every format, nothing but be read.

The fields are found by walking over the records, so that a new one is under attack without a word here.
"""

from __future__ import annotations

import ast
import json
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from markdown_it import MarkdownIt
from stories import STORIES

from torchferry.cli.screen import console
from torchferry.records import STAGES, Location
from torchferry.records.evidence import Outcome
from torchferry.report import from_json, github, html, render, text
from torchferry.report.next_steps import snippet
from torchferry.report.view import View, see
from torchferry.result import Result

IMAGE = "![x](http://evil/x.png)"
ATTACKS = {
    "nothing": "",
    "controls": "\x1b[31mred\x1b]8;;http://evil\x07\x08\r\x7f\x9b31m\x85\x0b\x0c",
    "direction": "\u202egnp\u2066\u2067\u2069\u200e\u200f\u061c",
    "invisible": "\u200b\u200d\ufeff\u2060\u2028\u2029\U000e0001\xa0",
    "surrogates": "\udcff\ud800",
    "command": "\n::error file=x,line=1::owned\n  ::set-output name=a::b\n\t::stop-commands::x",
    "command to be folded": " ".join(["::error::owned"] * 60),
    "older commands": "##[error]owned ##vso[task.complete result=Failed] ##teamcity[x]",
    "coded command": "%0A::error::owned%0D,line=7::%3A",
    "tags": "<script>alert(1)</script><img src=http://evil/x.png onerror=alert(1)></code></pre></details>",
    "attributes": "\" onload=\"alert(1)\" x='y' '><svg/onload=alert(1)>",
    "image": IMAGE,
    "image beside code": f"a` {IMAGE} `b",
    "image behind an odd tick": f"a` {IMAGE} <img src=x>",
    "image behind a slash": f"\\` {IMAGE} `\\",
    "image in doubled ticks": f"``` {IMAGE} `` {IMAGE} ` {IMAGE}",
    "image in a cell": f"a | {IMAGE} | \\| {IMAGE} \\\\| {IMAGE}",
    "image in a block": f"\n```\n{IMAGE}\n```\n\n# loud\n\n> said\n\n- one\n\n1. two\n\n    code\n\n---\n| a |\n|---|\n",
    "links": "[a](javascript:alert(1)) [b][c] [c]: //e\n\n[c]: http://e\n <http://evil> http://evil www.evil.org @you [^1]",
    "emphasis": "**loud** __loud__ *a* _b_ ~~c~~ $x^2$ &lt;b&gt; # = + -",
    "rich": "[red]x[/red] [link=http://evil]y[/link] [/]",
    "formats": "{0} {x!r} {{}} %s %(a)s %n $x ${y} \\1 \\g<0>",
    "code": "'\"\"\": 0}); import os; os.system('x') #\\\n",
    "long": "n" * 200_000,
    "long with spaces": "`" + "n m " * 50_000,
}
KEPT = {*STAGES, *get_args(Outcome), "error", "warning", "note", "export", "verify", "check", "safe", "unsafe", "manual"}
SAID = ("text", "markdown", "html")


def filled(kind: Any, evil: str, name: str = "") -> Any:
    """Return a value of a type with `evil` in every text of it."""
    if name == "severity":
        return "error"
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{f.name: filled(hints[f.name], evil, f.name) for f in fields(kind)})  # type: ignore[operator]
    if get_origin(kind) is Literal:
        return get_args(kind)[1]
    if get_origin(kind) is tuple:
        return tuple(filled(get_args(kind)[0], evil, name) for _ in range(2))
    if get_origin(kind) is Mapping:
        return {evil: evil}
    if isinstance(kind, types.UnionType):
        return filled(get_args(kind)[0], evil, name)
    return f"{name}{evil}" if kind is str else kind(1)


def poisoned(value: Any, evil: str) -> Any:
    """Return a record with `evil` in every text of it that is no word of our own."""
    if isinstance(value, str):
        return value if value in KEPT else f"{value}{evil}"
    if isinstance(value, Path):
        return Path(f"{value}{evil}")
    if isinstance(value, tuple | list | set):
        return type(value)(poisoned(item, evil) for item in value)
    if isinstance(value, Mapping):
        return {poisoned(k, evil): poisoned(v, evil) for k, v in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        here = isinstance(value, Location)  # a file that is not there has no lines to be shown
        changed = {f.name: v if here and f.name == "file" else poisoned(v, evil) for f, v in _values(value)}
        return type(value)(**changed)
    return value


def _values(record: Any) -> Iterator[tuple[Any, Any]]:
    return ((f, getattr(record, f.name)) for f in fields(record) if f.init)


@pytest.fixture(params=[*ATTACKS, *STORIES])
def told(request: pytest.FixtureRequest) -> View:
    """What a report tells: a view with an attack in every field, or a result with all of them in every record."""
    if request.param in ATTACKS:
        return filled(View, ATTACKS[request.param])  # type: ignore[no-any-return]
    story = STORIES[request.param]()
    evil = "".join(attack for attack in ATTACKS.values() if len(attack) < 2000)
    return see(Result(story.kind, poisoned(story.history, evil), poisoned(story.path, evil), 1.0, 1))


def inert(written: str) -> None:
    """Fail if a text has anything that a terminal or a runner of CI acts upon."""
    assert {c for c in written if not c.isprintable()} <= {"\n", "\t"}
    assert not [line for line in written.splitlines() if line.strip().startswith("::")]
    assert not re.search(r"##\w*\[", written)
    written.encode("utf-8")


@pytest.mark.parametrize("format", ["text", "markdown", "html", "json", "sarif"])
def test_nothing_in_a_report_acts_on_a_terminal_or_a_runner(told: View, format: str) -> None:
    inert(render(told, format))


@pytest.mark.parametrize("format", SAID)
def test_a_name_without_end_does_not_fill_a_report(format: str) -> None:
    for how in ("long", "long with spaces"):
        assert len(render(filled(View, ATTACKS[how]), format)) < 400_000


def test_a_terminal_gets_no_more_than_a_pipe(told: View) -> None:
    stream = StringIO()
    console(stream).print(text.styled(told))
    inert(stream.getvalue())
    assert [line.rstrip() for line in stream.getvalue().splitlines()] == render(told, "text").splitlines()


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags |= {tag, *(f"{tag} {name}" for name, _ in attrs)}

    def handle_data(self, data: str) -> None:
        self.words += data


def _page(written: str) -> _Page:
    page = _Page()
    page.feed(written)
    page.close()
    return page


def _plain() -> View:
    return filled(View, "")  # type: ignore[no-any-return]


def test_a_page_has_no_tag_or_attribute_but_our_own(told: View) -> None:
    for made in (html.render, html.notebook):
        ours = _page(made(_plain())).tags | _page(made(see(STORIES["different-file"]()))).tags | {"br"}
        assert _page(made(told)).tags <= ours


def test_a_page_lets_nothing_be_fetched_or_run() -> None:
    page = html.render(_plain())
    rules = re.search(r'<meta HTTP-EQUIV="Content-Security-Policy" content="([^"]+)">', page)
    assert rules is not None
    assert "default-src 'none'" in rules[1]
    assert "unsafe" not in rules[1]
    assert not {tag for tag in _page(page).tags if tag.endswith((" src", " href", " style"))}


def test_markdown_has_no_link_image_tag_or_block_but_our_own(told: View) -> None:
    written = render(told, "markdown")
    blocks = list(MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(written))
    spans = [child for token in blocks for child in token.children or ()]
    assert not {t.type for t in spans} & {"image", "link_open", "em_open", "s_open"}
    assert {t.content for t in spans if t.type == "html_inline"} <= {"<br>"}
    assert all(
        re.fullmatch(r"(<details><summary>All \d+ trials</summary>|</details>)\n", t.content)
        for t in blocks
        if t.type == "html_block"
    )
    sections = (told.moving, told.repairs, told.not_shown or told.not_done, told.notes)
    loud = sum(t.type == "strong_open" for t in spans)
    assert loud == len(told.repairs) + sum(bool(p.help) for p in told.problems)
    assert sum(t.type == "heading_open" for t in blocks) == 1 + len(told.problems) + sum(map(bool, sections))
    assert not [t for t in blocks if t.type in ("blockquote_open", "ordered_list_open", "code_block", "hr")]
    for token in blocks:
        if token.type == "inline":  # links that GitHub makes of words
            bare = "".join(c.content for c in token.children or () if c.type == "text")
            assert not re.search(r"://|www\.|@you", bare)


def test_an_annotation_is_one_command(told: View) -> None:
    commands = list(github.commands(told))
    assert len(commands) == len(told.problems)
    for command in commands:
        assert {c for c in command if not c.isprintable()} <= {"\t"}
        name, _, known = command[2:].partition("::")[0].partition(" ")
        assert name in ("error", "warning", "notice")
        assert [pair.split("=")[0] for pair in known.split(",")] in (["file", "line", "title"], ["line", "title"], ["title"])


def test_json_is_read_back_to_the_last_character(told: View) -> None:
    assert from_json(render(told, "json")) == told


def test_sarif_has_no_link_and_no_address_elsewhere(told: View) -> None:
    for run in json.loads(render(told, "sarif"))["runs"]:
        for result in run["results"]:
            assert not re.search(r"(?<!\\)\[[^\]]*\]\(", result["message"]["text"])
            for place in result["locations"]:
                uri = place.get("physicalLocation", {}).get("artifactLocation", {}).get("uri", "")
                assert re.fullmatch(r"(file:///)?[\w./%~-]*", uri)


def test_the_lines_to_be_copied_do_what_they_say(told: View) -> None:
    tree = ast.parse(snippet(told))
    assert [type(statement).__name__ for statement in tree.body[-1:]] == ["Assign"]
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert called <= {
        "ort.InferenceSession", "ort.SessionOptions", "options.register_custom_ops_library", "session.run", "np.zeros", "np.ones",
    }  # fmt: skip
    (feeds,) = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    assert [k.value for k in feeds.keys if isinstance(k, ast.Constant)] == [t.name for t in told.inputs]


def test_a_size_of_a_report_that_was_read_is_no_code(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    data = json.loads(render(STORIES["verified"](), "json"))
    data["inputs"][0]["shape"] = [f"__import__('pathlib').Path({str(mark)!r}).touch()", "9**9**9**9", "(" * 5000, "1//0", "²"]
    assert "(2, 2, 2, 2, 2)" in render(from_json(json.dumps(data)), "text")
    assert not mark.exists()
