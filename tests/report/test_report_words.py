"""Every sentence that a report can say, reviewed as text: `make docs` rewrites the snapshots, and the diff is the review."""

from __future__ import annotations

import json

import pytest
from stories import STORIES
from syrupy.assertion import SnapshotAssertion

from torchferry.records import Location
from torchferry.report import github, html, recipe, render
from torchferry.report.shown_source import place


@pytest.mark.parametrize("story", STORIES)
def test_words_of_the_text_report(story: str, snapshot: SnapshotAssertion) -> None:
    assert render(STORIES[story](), "text") == snapshot


@pytest.mark.parametrize("story", STORIES)
def test_words_of_the_markdown_report(story: str, snapshot: SnapshotAssertion) -> None:
    assert render(STORIES[story](), "markdown") == snapshot


@pytest.mark.parametrize("story", STORIES)
def test_words_of_the_html_report(story: str, snapshot: SnapshotAssertion) -> None:
    assert html.notebook(STORIES[story]()).partition("</style>")[2] == snapshot


@pytest.mark.parametrize("story", STORIES)
def test_words_of_the_sarif_report(story: str, snapshot: SnapshotAssertion) -> None:
    assert json.loads(render(STORIES[story](), "sarif")) == snapshot


def test_words_of_the_json_report(snapshot: SnapshotAssertion) -> None:
    assert json.loads(render(STORIES["different-file"](), "json")) == snapshot


def test_words_of_github_annotations(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(github.commands(STORIES["refused"]())) == snapshot


def test_words_of_the_recipe(snapshot: SnapshotAssertion) -> None:
    assert recipe.script(STORIES["verified"]()) == snapshot


def test_words_of_a_place(snapshot: SnapshotAssertion) -> None:
    places = [
        Location("model.py", 3),
        Location(input_name="ids"),
        Location("model.py", 3, "encoder", "aten.add", "x", "node_1"),
        Location(),
    ]
    assert [place(where) for where in places] == snapshot
