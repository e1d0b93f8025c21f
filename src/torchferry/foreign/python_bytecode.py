"""Door to Python's bytecode, which differs with every release: the steps of a function with their lines, and which go back.

Relies on `dis.get_instructions`, on jumps being called so and having the place they go to as `argval`, and on
`code.co_lines()` (since 3.10).
Should they move: `ast` on the source tells the same, where there is a source.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType


def steps(code: CodeType) -> Iterator[tuple[dis.Instruction, int | None]]:
    """Yield each instruction of a function's code, and its line; None for what belongs to no line."""
    lines = {place: line for begin, end, line in code.co_lines() for place in range(begin, end)}
    for step in dis.get_instructions(code):
        yield step, lines.get(step.offset)


def jumps(step: dis.Instruction) -> bool:
    """Whether an instruction may go on elsewhere than at the next one."""
    return "JUMP" in step.opname


def jumps_back(step: dis.Instruction) -> bool:
    """Whether an instruction may go on at an earlier one, as at the end of a loop."""
    return jumps(step) and isinstance(step.argval, int) and step.argval <= step.offset
