"""All mutants of a file in one model (mutant schemata): an input says which of them runs, -1 that none does.

Each node that has mutants becomes an `If` with the mutant in one branch and what was there in the other, so that hundreds of
mutants share one session, their weights and everything that they do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx
from onnx import helper

from torchferry.verify.coverage.stored import graphs

SELECTOR = "torchferry.mutant"
ROUNDS = 4096  # that a loop makes at most: many a mutant's condition would never end it


@dataclass(frozen=True, slots=True)
class Mutant:
    """One small change to a file: other nodes, which give the same names, in the place of one node."""

    what: str  # "inputs swapped"
    node: str  # the first name that the node gives
    graph: str  # where the node is, as `stored.graphs` names it
    label: str  # its name, or its operator's
    nodes: tuple[onnx.NodeProto, ...]
    weight: str = ""  # the weight that it changes


def schemata(model: onnx.ModelProto, mutants: Sequence[Mutant]) -> onnx.ModelProto:
    """Return the model with all mutants of its nodes in it; it is changed in place.

    Its loops make no more than so many rounds. Whether it gives what the file gives even so, a run without any mutant tells.
    """
    by_node: dict[tuple[str, str], list[tuple[int, Mutant]]] = {}
    for number, mutant in enumerate(mutants):
        by_node.setdefault((mutant.graph, mutant.node), []).append((number, mutant))
    _bound_loops(model)
    for place, graph in reversed(list(graphs(model.graph))):  # what is nested first
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            own = by_node.get((place, node.output[0]), []) if node.output else []
            nodes += _choice(node, own) if own else [node]
        if len(nodes) > len(graph.node):
            kept = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
            del graph.node[:]
            graph.node.extend(kept)
    model.graph.input.append(helper.make_tensor_value_info(SELECTOR, onnx.TensorProto.INT64, []))
    return model


def _bound_loops(model: onnx.ModelProto) -> None:
    endless = [n for _, g in graphs(model.graph) for n in g.node if n.op_type == "Loop" and not n.input[0]]
    if endless:
        rounds = f"{SELECTOR}.rounds"
        model.graph.node.insert(0, helper.make_node("Constant", [], [rounds], value_int=ROUNDS))
        for node in endless:
            node.input[0] = rounds


def _choice(node: onnx.NodeProto, mutants: Sequence[tuple[int, Mutant]]) -> list[onnx.NodeProto]:
    """Return nodes that give what a node gives, or what the chosen one of its mutants does."""
    before: list[onnx.NodeProto] = []
    inner, given = [node], [o for o in node.output if o]
    for number, mutant in mutants:
        flag, wanted = f"{SELECTOR}.{number}", f"{SELECTOR}.{number}.number"
        before.append(helper.make_node("Constant", [], [wanted], value_int=number))
        before.append(helper.make_node("Equal", [SELECTOR, wanted], [flag]))
        there = _branch(mutant.nodes, given, f"{number}.then")
        otherwise = _branch(inner, given, f"{number}.else")
        inner = [helper.make_node("If", [flag], given, then_branch=there, else_branch=otherwise)]
    return [*before, *inner]


def _branch(nodes: Sequence[onnx.NodeProto], given: Sequence[str], mark: str) -> onnx.GraphProto:
    """Return nodes as the branch of an If: what they make has names of its own there."""
    made = {o for n in nodes for o in n.output if o}
    renamed = []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for names in (copy.input, copy.output):
            for place, name in enumerate(names):
                if name in made:
                    names[place] = f"{name}@{mark}"
        copy.name = ""  # two nodes must not share one
        renamed.append(copy)
    return helper.make_graph(renamed, mark, [], [onnx.ValueInfoProto(name=f"{name}@{mark}") for name in given])
