"""torch's trees of tensors, as the door has them."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.foreign import torch_trees as door


class Pair:
    def __init__(self, one: Any, two: Any) -> None:
        self.one, self.two = one, two


torch.utils._pytree.register_pytree_node(Pair, lambda p: ([p.one, p.two], "context"), lambda parts, _: Pair(*parts))


def test_leaves_are_found_changed_and_put_together_again() -> None:
    tree = {"a": [1, (2, 3)], "b": 4}
    leaves, spec = door.tree_flatten(tree)
    assert leaves == door.tree_leaves(tree) == [1, 2, 3, 4]
    assert door.tree_unflatten([5, 6, 7, 8], spec) == door.tree_map(lambda n: n + 4, tree) == {"a": [5, (6, 7)], "b": 8}
    assert door.arg_tree_leaves([1], key=2) == [1, 2]


def test_a_registered_class_is_taken_apart_and_made_again() -> None:
    assert door.is_registered(Pair(1, 2))
    assert not door.is_registered(object())
    parts, make = door.taken_apart(Pair(1, 2))
    assert parts == [1, 2]
    assert make([3, 4]).two == 4


def test_the_name_that_is_written_into_users_code_is_that_function() -> None:
    assert eval(door.TREE_MAP, {"torch": torch}) is door.tree_map
