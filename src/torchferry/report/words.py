"""The sentences that every report shares."""

from __future__ import annotations

from collections.abc import Sequence

from torchferry.records import FAILING, Outcome

NOT_DONE = {
    "inputs": "its inputs could not be bound",
    "capture": "it could not be captured",
    "translate": "it could not be translated",
    "check": "the file could not be checked",
    "verify": "it could not be compared with the eager model",
    "generate": "it could not be made to write a text",
    "load-failed": "the model could not be loaded",
    "process-died": "the work broke off",
}


def plural(number: int, noun: str) -> str:
    """Return `1 trial`, `2 trials`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def headline(
    kind: str,
    ok: bool,
    path: str,
    *,
    outcomes: Sequence[Outcome],
    severities: Sequence[str],
    stopped: str,
    mended: str = "",
    rounded: str = "",
    ran: bool = True,
) -> str:
    """Return the sentence that a report starts with.

    `rounded` names the precision of a file that is no longer exact; `ran` is whether a file from elsewhere was seen to run.
    """
    file = f"`{path}`" if path else "the file"
    agree = sum(o == "agree" for o in outcomes)
    failed = sum(o in FAILING for o in outcomes)
    errors = severities.count("error")
    if kind == "check" and mended == "file":
        return f"{file} does not work as it is, and can be mended"
    if kind == "check" and ok and not ran:
        return f"{file} loads; it was not seen to run"
    if kind == "check" and ok:
        return f"{file} loads, and runs once its feeds are mended" if mended == "feeds" else f"{file} loads and runs"
    if kind == "check":
        return f"{file} has {plural(errors, 'problem')}"
    if ok and not agree and "random" in outcomes:
        return f"verified: {file} gives outputs of the model's shapes and dtypes; their values are random"
    if ok and rounded:
        return f"near, not exact: {file} has {rounded} weights; with its exact ones it was verified in {plural(agree, 'trial')}"
    if ok:
        return f"verified: {file} computes what the model computes, in {plural(agree, 'trial')}"
    wrong = f"different from the model in {failed} of {plural(agree + failed, 'trial')}" if failed else ""
    nothing = "" if errors or agree else "not one comparison was possible"
    reason = NOT_DONE.get(stopped, "") or wrong or nothing or f"{plural(errors, 'problem')} found"
    if kind == "verify":
        return f"not verified: {file} is {wrong}" if wrong else f"not verified: {reason}"
    return f"not exported: the file would be {wrong}" if wrong and not stopped else f"not exported: {reason}"


def size(number: int) -> str:
    """Return a number of bytes as people say it: `1.3 MB`."""
    value = float(number)
    for unit in ("bytes", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"


def duration(seconds: float) -> str:
    """Return a time as people say it: `4.1 s`, `2 min 5 s`."""
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    return f"{round(seconds) // 60} min {round(seconds) % 60} s"


def span(low: int, high: int | None) -> str:
    """Return a range of sizes: `1..64`, or `1..` where nothing ends it."""
    return f"{low}..{'' if high is None else high}"


def share(ratio: float) -> str:
    """Return a difference over what is allowed: `3%`, `less than 1%`, `31 times`."""
    if ratio < 0.01:
        return "less than 1%"
    return f"{ratio:.0%}" if ratio <= 2 else f"{ratio:.3g} times"


def lower_start(title: str) -> str:
    """Return a title as our sentences begin, in lower case; names such as `ONNX` and `NaN` stay as they are."""
    rest = title.split(" ", 1)[0][1:]
    return title if any(letter.isupper() for letter in rest) else title[:1].lower() + title[1:]
