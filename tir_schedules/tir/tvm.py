"""TVM, imported when it is needed."""

from __future__ import annotations

import inspect
import sys
from functools import lru_cache
from types import ModuleType
from typing import Any


def import_tvm() -> Any:
    """The tvm module with its s_tir part, which a type checker does not see through.

    TVM imports torch when it finds it, which is of no use here: it takes seconds, and asks CUDA for its
    devices, after which no fork of this process can use a GPU.
    """
    modules: dict[str, Any] = sys.modules
    hide_torch = "torch" not in modules
    if hide_torch:
        modules["torch"] = None
    try:
        import tvm
        import tvm.s_tir
    finally:
        if hide_torch:
            del modules["torch"]
    hasten_prim_func()
    return tvm


def nodes_in(root: Any, kind: type) -> list[Any]:
    """All nodes of a kind in a statement or an expression, inner ones first."""
    import tvm_ffi

    found: list[Any] = []
    tvm_ffi.structural_walk(root, (kind, lambda node: found.append(node)))
    return found


def hasten_prim_func() -> None:
    """Give TVM's parser of PrimFuncs a cheap list of its callers, and have it read a function once.

    It asks inspect.stack(), twice per function, which looks up file, module and source text of every frame:
    half a second each time, among the thousand modules of TVM. What it reads are the frames' variables.
    It reads the text of a function three times, and again for each call of a function around it.
    """
    from tvm.script.parser.core import doc, utils
    from tvm.tirx.script.parser import entry

    known: ModuleType = vars(entry)["inspect"]
    if known is not inspect:
        return
    quick = ModuleType(inspect.__name__, inspect.__doc__)
    vars(quick).update(vars(inspect), stack=callers)
    entry.__dict__["inspect"] = quick
    doc.__dict__["parse"] = lru_cache(maxsize=None)(vars(doc)["parse"])
    names = vars(utils)["_collect_annotation_names"]
    names_in_code = lru_cache(maxsize=None)(names)
    utils.__dict__["_collect_annotation_names"] = lambda it: (
        names_in_code(it.__code__) if inspect.isfunction(it) else names(it)
    )


def callers() -> list[inspect.FrameInfo]:
    """What inspect.stack() returns to its caller, without lines of source."""
    frames = []
    frame = sys._getframe(1)
    while frame:
        code = frame.f_code
        frames.append(inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, None, None))
        frame = frame.f_back
    return frames
