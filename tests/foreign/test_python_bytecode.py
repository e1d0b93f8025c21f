"""The lines of a function's bytecode, and its jumps, as they are in every release of Python."""

from __future__ import annotations

from typing import Any

from torchferry.foreign.python_bytecode import jumps, jumps_back, steps


class Counter:
    def count(self, x: Any) -> Any:
        self.calls = 1
        while x > 0:
            x = x - 1
        return x


def if_only(x: Any) -> Any:
    if x > 0:
        x = -x
    return x


CODE = Counter.count.__code__
FIRST = CODE.co_firstlineno


def test_an_instruction_knows_its_line() -> None:
    assert [line for step, line in steps(CODE) if step.opname == "STORE_ATTR"] == [FIRST + 1]


def test_a_loop_jumps_back_from_its_own_lines() -> None:
    lines = {line for step, line in steps(CODE) if jumps_back(step)}
    assert lines
    assert lines <= {FIRST + 2, FIRST + 3}


def test_a_branch_jumps_and_does_not_jump_back() -> None:
    code = if_only.__code__
    assert [line for step, line in steps(code) if jumps(step)] == [code.co_firstlineno + 1]
    assert not any(jumps_back(step) for step, _ in steps(code))
