"""TVM, imported when it is needed."""

from __future__ import annotations

import sys
from typing import Any


def import_tvm() -> Any:
    """The tvm module with its s_tir part, which a type checker does not see through.

    TVM imports torch when it finds it, which serves nobody here: it takes seconds, and asks CUDA for its
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
    return tvm
