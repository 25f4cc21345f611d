"""TVM, imported when it is needed."""

from __future__ import annotations

import sys


def import_tvm():
    """The tvm module with its s_tir part. TVM imports torch when it finds it, which serves nobody here: it
    takes seconds, and asks CUDA for its devices, after which no fork of this process can use a GPU."""
    hide_torch = "torch" not in sys.modules
    if hide_torch:
        sys.modules["torch"] = None
    try:
        import tvm
        import tvm.s_tir
    finally:
        if hide_torch:
            del sys.modules["torch"]
    return tvm
