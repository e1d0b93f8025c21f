"""The files at the root of the repository as pages of the site, with the links between them and docs/ put right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

AT_THE_ROOT = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}


def on_files(files: Any, config: Any) -> Any:
    """Add the files at the root."""
    for source, page in AT_THE_ROOT.items():
        text = Path(config.config_file_path).with_name(source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with its links to the root pointing to the pages made of it."""
    return re.sub(r"\]\(((?:\.\./)+)([A-Z]+\.md)", _moved, markdown)


def _moved(link: re.Match[str]) -> str:
    up = link[1].removesuffix("../")  # the root is one folder above docs/
    return f"]({up}{AT_THE_ROOT[link[2]]}" if link[2] in AT_THE_ROOT else link[0]
