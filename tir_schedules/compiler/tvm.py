"""TVM, imported when it is needed."""
from __future__ import annotations

import sys


def import_tvm():
    """The tvm module with its s_tir part. TVM imports torch when it finds it, which takes seconds and serves nobody here."""
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
