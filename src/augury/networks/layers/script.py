"""Layers of a TorchScript program, which runs outside Python and calls no hooks.

A module's graph is copied and made to return, beside its output, the arguments and the output of
each submodule that it calls; the submodules are then looked into in the same way. A layer nested
k deep runs k times. Layers called inside a branch or a loop of a scripted program are not seen,
and a layer whose output the next one changes in place is seen after the change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Hear = Callable[[str, Any], None]


def run_script(module: torch.jit.ScriptModule, x: Any, hear: Hear) -> None:
    """Run a program on x; call `hear` with the output of each layer, in the order they end."""
    _look_into(module, (x,), "", hear)


def _look_into(module: Any, args: tuple[Any, ...], prefix: str, hear: Hear) -> None:
    graph = module.graph.copy()
    calls = [
        node
        for node in graph.nodes()
        if node.kind() == "prim::CallMethod" and node.s("name").startswith("forward")
    ]
    if not calls:
        return
    wanted = [value for node in calls for value in (*list(node.inputs())[1:], *node.outputs())]
    results = _run(module, graph, wanted, args)
    children = dict(module.named_modules())
    for node in calls:
        inputs = [next(results) for _ in list(node.inputs())[1:]]
        outputs = [next(results) for _ in node.outputs()]
        name = _path(node)
        _look_into(children[name], tuple(inputs), f"{prefix}{name}.", hear)
        hear(prefix + name, outputs[0])


def _run(module: Any, graph: Any, wanted: list[Any], args: tuple[Any, ...]) -> Any:
    """Run a copy of a graph that returns these values instead of its output."""
    outputs = len(list(graph.outputs()))
    joined = graph.create("prim::TupleConstruct", wanted, 1)
    graph.appendNode(joined)
    joined.output().setType(torch._C.TupleType([value.type() for value in wanted]))
    for _ in range(outputs):
        graph.eraseOutput(0)
    graph.registerOutput(joined.output())
    function = torch._C._create_function_from_graph("forward", graph)
    return iter(function(module._c, *args))


def _path(node: Any) -> str:
    """Return the path of the submodule that a node calls."""
    value, names = next(node.inputs()), []
    while value.node().kind() == "prim::GetAttr":
        names.append(value.node().s("name"))
        value = next(value.node().inputs())
    return ".".join(reversed(names))
