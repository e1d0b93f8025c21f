"""Text that others wrote (names in a file, paths, foreign errors, a model's words), as each medium can show it safely.

What cannot be printed is shown as Python's `repr` shows it: `\\x1b`, `\\u202e`, and `\\n` for a line end within a name.
What comes out of a function here goes through it again unchanged, but for `html`, `markdown` and their like: these are last.
"""

from __future__ import annotations

import html as _html
import json
import re
import shlex
from typing import Any

LONGEST_NAME = 512  # characters; a file's name has at most 255
LONGEST_LINE = 4096  # of a sentence with such names in it; a path has no more
LONGEST_TEXT = 65536  # of all that is said at once
_ODD = re.compile(r"[^ -~]")  # what may have to be escaped
_SPAN = re.compile(r"`[^`]+`")
_LONG = re.compile(rf"`[^`]{{{LONGEST_NAME},}}`|\S{{{LONGEST_NAME + 1},}}")
# What the runners of CI services take for commands: `::error::` at the start of a line, `##[error]` and `##vso[` anywhere in it.
_COMMAND = re.compile(r"^([^\S\n]*):(?=:)|#(?=#\w*\[)", re.M)
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# In Markdown: what begins a tag, an entity, code, emphasis, mathematics, a cell, an image, or ends the text of a link.
_MARKS = re.compile(r"[\\`*~$|]|(?<![^\W_])_|_(?![^\W_])|!(?=\[)|\](?=[(\[:])")
_BLOCK = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=[#>+=-]))")  # what makes a list, a heading or a quotation of a paragraph
_LINKED = re.compile(r"[^\s`]*(?:://|\bwww\.|@(?=\w))[^\s`]*")  # what GitHub makes a link, or a mention, of by itself


def visible(text: str) -> str:
    """Return a text without anything that a terminal or a CI service acts upon; its line ends and tabs are kept."""
    shown = _ODD.sub(lambda m: m[0] if m[0].isprintable() or m[0] in "\n\t" else repr(m[0])[1:-1], text)
    return _COMMAND.sub(lambda m: "\\x23" if m[1] is None else f"{m[1]}\\x3a", shown)


def line(text: str) -> str:
    """Return a name, a path or a title as one line; one that is longer than any honest one is cut in the middle."""
    return visible(_shortened(_middle(text, LONGEST_TEXT))).replace("\n", "\\n").replace("\t", "\\t")


def prose(text: str) -> str:
    """Return sentences with names in them: line ends are kept, but for those in backticks, which belong to a name."""
    told = _SPAN.sub(lambda span: line(span[0]), _middle(text, LONGEST_TEXT).replace("\r\n", "\n"))
    return visible("\n".join(map(_shortened, told.split("\n"))))


def spoken(text: str) -> str:
    """Return what a model wrote: no control character reaches the terminal; joiners and marks of scripts and emoji do."""
    return _ODD.sub(lambda m: repr(m[0])[1:-1] if _acts(m[0]) else m[0], text)


def html(text: str) -> str:
    """Return a text for HTML, between tags and in quoted attributes."""
    return _html.escape(visible(text))


def markdown(text: str, *, cell: bool = False) -> str:
    """Return sentences for Markdown, in one line: what stands in backticks is code, and nothing else is markup."""
    made, at = [], 0
    for span in _SPAN.finditer(text):
        made += [_unmarked(text[at : span.start()], cell=cell), code(span[0][1:-1], cell=cell)]
        at = span.end()
    said = "".join([*made, _unmarked(text[at:], cell=cell)]).strip()
    return said.replace("\n", " ") if cell else _BLOCK.sub(lambda m: f"{m[1]}\\", said).replace("\n", "<br>")


def code(text: str, *, cell: bool = False) -> str:
    """Return a name as a span of code for Markdown; `cell` for one in a table, where a bar ends it even so."""
    text = line(text)
    if cell:
        text = text.replace("\\|", "\\\\x7c").replace("|", "\\|")
    ticks = "`" * (1 + _longest_run(text))
    room = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{ticks}{room}{text}{room}{ticks}" if text else ""


def fenced(text: str, language: str) -> str:
    """Return lines of code as a block for Markdown, which nothing in them can end."""
    ticks = "`" * max(3, 1 + _longest_run(text))
    return f"{ticks}{language}\n{visible(text)}\n{ticks}"


def workflow(text: str, *, value: bool = False) -> str:
    """Return a text as GitHub's workflow commands take it; `value` for what stands before the second `::`."""
    pairs = [("%", "%25"), ("\r", "%0D"), ("\n", "%0A")] + ([(":", "%3A"), (",", "%2C")] if value else [])
    text = visible(text)
    for plain, coded in pairs:
        text = text.replace(plain, coded)
    return text


def shell(word: str) -> str:
    """Return a word of a command that can be copied: quoted, and in bash's `$'...'` where it has what cannot be shown."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(_in_shell(c) for c in word) + "'"


def written_json(data: Any, **options: Any) -> str:
    """Return data as JSON that can be shown anywhere: what is read from it is the same to the last character."""
    text = json.dumps(data, **options)
    shown = _ODD.sub(lambda m: m[0] if m[0].isprintable() or m[0] == "\n" else json.dumps(m[0])[1:-1], text)
    return re.sub(r"#(?=#\w*\[)", r"\\u0023", shown)


def _shortened(text: str) -> str:
    return _middle(_LONG.sub(lambda m: _middle(m[0], LONGEST_NAME), text), LONGEST_LINE)


def _middle(text: str, most: int) -> str:
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}...[{len(text)} characters]...{text[-half:]}"


def _acts(c: str) -> bool:
    return (
        (c < " " and c not in "\n\t") or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" or c in _BIDI or c in "\u2028\u2029"
    )


def _unmarked(text: str, *, cell: bool) -> str:
    made, at = [], 0
    for link in _LINKED.finditer(text):
        made += [_marks_shown(text[at : link.start()]), code(link[0], cell=cell)]
        at = link.end()
    return "".join([*made, _marks_shown(text[at:])])


def _marks_shown(text: str) -> str:
    return _MARKS.sub(r"\\\g<0>", text).replace("&", "&amp;").replace("<", "&lt;")


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _in_shell(c: str) -> str:
    if c.isprintable():
        return f"\\{c}" if c in "\\'" else c
    kept = "surrogateescape" if "\udc80" <= c <= "\udcff" else "surrogatepass"  # a byte of a file's name that is no text
    return "".join(f"\\x{byte:02x}" for byte in c.encode("utf-8", kept))
