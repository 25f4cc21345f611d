"""Asynchronous copies that have the L2 cache fetch whole lines.

A 16-byte `cp.async` may carry the hint `.L2::128B`: what is missing in L2 is then fetched as a line of 128
bytes, not as sectors of 32. A tile that is 32 halves deep reads 64 bytes of each row of A, and with the hint
the next tile finds the other 64 in L2. TVM's instruction has no place for the hint, so that it is put into
the CUDA it printed.
"""

from __future__ import annotations

COPY, HINTED = "cp.async.cg.shared.global [", "cp.async.cg.shared.global.L2::128B ["


def whole_lines(source: str) -> str:
    """CUDA source with the hint in all its 16-byte asynchronous copies."""
    return source.replace(COPY, HINTED)
