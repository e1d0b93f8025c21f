"""What is said when a private API is not where it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from torchferry.errors import ForeignApiMoved


@contextmanager
def relying_on(package: str, what: str) -> Iterator[None]:
    """Let a block import or look up what `package` keeps private; where it is gone, say what moved and in which release."""
    try:
        yield
    except (ImportError, AttributeError) as error:
        raise moved(package, what, error) from error


def moved(package: str, what: str, found: object) -> ForeignApiMoved:
    """Return the error that names what is not where it was, the release that is installed, and what was found instead."""
    return ForeignApiMoved(f"{package} {_installed(package)} keeps {what} elsewhere than torchferry knows: {found}")


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # under another name, as onnxruntime-gpu is
        return "of an unknown version"
