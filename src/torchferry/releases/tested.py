"""Releases of torch that torchferry has been tried with: a newer one is used all the same, and said to be untested."""

from __future__ import annotations

OLDEST, NEWEST = (2, 12), (2, 15)


def untested(torch: str | None) -> str:
    """Return that a release of torch is newer than any that was tried, in words; nothing if it is not."""
    numbers = tuple(int(part) for part in (torch or "").split("+")[0].split(".")[:2] if part.isdigit())
    if len(numbers) < 2 or numbers <= NEWEST:
        return ""
    shown, newest = (".".join(map(str, release)) for release in (numbers, NEWEST))
    return f"untested with torch {shown}: the newest release that was tried is {newest}"
