"""The door for data: by the types of a record, whatever a file says."""

from __future__ import annotations

import contextlib
import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import hypothesis.strategies as st
import pytest
from hypothesis import given

from torchferry import catalogue, intake
from torchferry.errors import FileRefused
from torchferry.records.documents import Certificate, DirectoryRecord, SessionMetadata, Within
from torchferry.report.view import View


@dataclass(frozen=True, slots=True)
class Inner:
    share: Annotated[float, Within(0, 1)] = 0.5


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    kind: Literal["a", "b"] = "a"
    sizes: Mapping[str, tuple[int, int | None]] | None = None
    inner: Inner | None = None
    on: bool = False


def test_what_fits_becomes_a_record() -> None:
    held = {"name": "x", "sizes": {"n": [1, None]}, "inner": {"share": 1}, "on": True}
    assert intake.made(Outer, held, "d") == Outer("x", "a", {"n": (1, None)}, Inner(1.0), True)


WRONG: dict[str, Any] = {
    "`name` is missing": {},
    "it is a list, and must be an object": [],
    "`nome` is not among what may stand there (did you mean `name`?)": {"name": "x", "nome": 1},
    "`name` is null, and must be text": {"name": None},
    "`kind` must be one of 'a', 'b'": {"name": "x", "kind": ["a"]},
    "`sizes.n` has 3 parts, and must have 2": {"name": "x", "sizes": {"n": [1, 2, 3]}},
    "`sizes.n[1]` is text, and must be a whole number or null": {"name": "x", "sizes": {"n": [1, "2"]}},
    "`sizes.n[0]` is true or false, and must be a whole number": {"name": "x", "sizes": {"n": [True, 2]}},
    "`sizes.n[0]` is out of range": {"name": "x", "sizes": {"n": [-(10**40), 2]}},
    "`inner.share` is out of range: it must be 0..1": {"name": "x", "inner": {"share": 1.5}},
    "`inner.share` is out of range": {"name": "x", "inner": {"share": float("nan")}},
    "`inner.share` is out": {"name": "x", "inner": {"share": 10**400}},
    "`inner.share` is out of": {"name": "x", "inner": {"share": float("inf")}},
    "`inner` is a list, and must be an object or null": {"name": "x", "inner": []},
    "`on` is a whole number, and must be true or false": {"name": "x", "on": 1},
}


@pytest.mark.parametrize("words", WRONG)
def test_what_does_not_fit_is_refused_with_its_place(words: str) -> None:
    with pytest.raises(FileRefused) as refused:
        intake.made(Outer, WRONG[words], "d")
    assert str(refused.value).startswith(f"CHK032: `d` is refused: {words}")


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
)


@given(JSON, st.sampled_from([Outer, DirectoryRecord, SessionMetadata, Certificate, View]))
def test_whatever_is_said_there_is_a_record_or_a_refusal(held: Any, kind: type[Any]) -> None:
    with contextlib.suppress(FileRefused):
        assert isinstance(intake.made(kind, intake.parsed(json.dumps(held), "d"), "d"), kind)


def test_the_code_is_that_of_the_rule() -> None:
    assert catalogue.find("document-refused").code == FileRefused.code
    again = pickle.loads(pickle.dumps(FileRefused("d", "it is")))
    assert (again.document, again.why, str(again)) == ("d", "it is", "CHK032: `d` is refused: it is")
