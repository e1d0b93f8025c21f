"""Every code has one address, said in one place; a report links to it only where a reader can follow the link."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stories import STORIES

from torchferry import catalogue
from torchferry.report import addresses, from_json, render
from torchferry.report.explain import as_dict

ROOT = Path(__file__).parents[2]


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(addresses.SETTING, "https://docs.example.org/torchferry")
    return "https://docs.example.org/torchferry/diagnoses/CAP003.html"


@pytest.fixture
def unpublished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(addresses.SETTING, raising=False)
    monkeypatch.setattr(addresses, "_documented", lambda: "")


def test_every_code_has_an_address_at_which_its_page_stands(unpublished: None) -> None:
    for entry in catalogue.load():
        address = addresses.of(entry.code)
        assert address == f"diagnoses/{entry.code}.html"
        assert (ROOT / "docs" / address).with_suffix(".md").is_file()


def test_a_code_of_somebody_else_has_no_page_of_ours() -> None:
    assert addresses.of("OURS001") == ""


def test_sarif_json_markdown_and_html_take_their_links_from_the_setting(published: str) -> None:
    story = STORIES["refused"]()
    (rule,) = (r for r in json.loads(render(story, "sarif"))["runs"][0]["tool"]["driver"]["rules"] if r["id"] == "CAP003")
    assert rule["helpUri"] == published
    assert json.loads(render(story, "json"))["problems"][0]["page"] == published
    assert f"[CAP003]({published})" in render(story, "markdown")
    assert f'href="{published}"' in render(story, "html")
    assert as_dict(catalogue.find("CAP003"))["address"] == published


def test_without_a_public_address_sarif_has_no_uri_and_nothing_is_a_link(unpublished: None) -> None:
    story = STORIES["refused"]()
    rules = json.loads(render(story, "sarif"))["runs"][0]["tool"]["driver"]["rules"]
    assert all("helpUri" not in r and "torchferry explain" in r["help"]["text"] for r in rules if r["id"] != "torchferry")
    assert json.loads(render(story, "json"))["problems"][0]["page"] == "diagnoses/CAP003.html"
    assert "CAP003.html" not in render(story, "markdown") + render(story, "html")


@pytest.mark.parametrize("harm", ["javascript:alert(1)", "https://x.org/)![a](b", 'https://x.org/"><script>', "data:text/html,x"])
def test_an_address_in_a_report_of_somebody_else_becomes_no_link_unless_it_is_a_plain_one(harm: str) -> None:
    data = json.loads(render(STORIES["refused"](), "json"))
    data["problems"][0]["page"] = harm
    again = from_json(json.dumps(data))
    assert harm not in render(again, "markdown") + render(again, "html") + render(again, "sarif")
