"""The state of the search for sizes that move: which axes do, and how each is made of the sizes that move freely."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from torchferry.inputs.sizes import expressions as size_text
from torchferry.inputs.sizes.probing import Axis, Shapes, moved
from torchferry.records import Size


@dataclass(slots=True)
class Ties:
    """The state of the search: a root is a size that moves; each axis is a number or an expression over roots."""

    base: Shapes
    roots: dict[str, int] = field(default_factory=dict)  # root -> its size in the example
    sizes: dict[Axis, Size] = field(default_factory=dict)  # the axes that move
    steps: dict[str, int] = field(default_factory=dict)  # root -> the step in which it moves, when more than one
    ends: dict[str, int] = field(default_factory=dict)  # root -> its largest size, when it only shrinks
    shown: dict[str, tuple[int, int]] = field(default_factory=dict)  # root -> its range, when only the user's examples move it

    def shapes(self, **sizes: int) -> Shapes:
        """Return the shapes with some roots at other sizes."""
        chosen = {**self.roots, **sizes}
        return moved(self.base, {axis: size_text.value(s, chosen) for axis, s in self.sizes.items()})

    def add(self, axes: Iterable[Axis], size: int) -> str:
        """Return a new root that these axes are tied to."""
        root = next(name for k in itertools.count() if (name := f"r{k}") not in self.roots)  # some may have been merged away
        self.roots[root] = size
        self.sizes.update(dict.fromkeys(axes, root))
        return root

    def merge(self, root: str, other: str) -> None:
        """Make a root the same as another one."""
        for axis, size in self.sizes.items():
            if isinstance(size, str):
                self.sizes[axis] = re.sub(rf"\b{root}\b", other, size)
        self._forget(root)

    def freeze(self, root: str) -> None:
        """Leave the axes that a root is in as they are in the example."""
        for axis in [axis for axis, size in self.sizes.items() if root in size_text.names(size)]:
            del self.sizes[axis]
        self._forget(root)

    def _forget(self, root: str) -> None:
        for table in (self.roots, self.steps, self.ends):
            table.pop(root, None)
