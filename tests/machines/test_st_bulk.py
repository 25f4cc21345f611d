"""st.bulk: a thread fills shared memory with zeros. Source: PTX ISA 9.0, st.bulk."""

import numpy as np
import pytest
from ptx_kernels import launch, module

from tir_schedules.machines.cpu.ptx import UnsupportedInstruction

FILLED, LEFT = 48, 16
BODY = """.reg .b32 t, v, at; .reg .b64 y, off, wide; .reg .pred first; .shared .align 16 .b8 tile[64];
mov.u32 t, %tid.x; mul.wide.u32 off, t, 4; ld.param.u64 y, [Y]; add.s64 y, y, off;
mov.u32 at, tile; mad.lo.u32 at, t, 4, at; st.shared.b32 [at], 7; bar.sync 0; setp.eq.u32 first, t, 0;
{fill}
bar.sync 0; ld.shared.b32 v, [at]; st.global.b32 [y], v;
"""


def run(fill):
    arrays = {"Y": np.zeros(16, np.uint32)}
    return launch(module("test", ("Y",), BODY.format(fill=fill)), arrays, ("Y",), block=(16, 1, 1)), arrays[
        "Y"
    ]


@pytest.mark.parametrize(
    "fill",
    [
        "@first st.bulk.weak.shared::cta [tile], 48, 0;",
        "mov.u32 v, 48; @first st.bulk.shared [tile], v, 0;",
        "cvta.shared.u64 wide, tile; mov.u64 off, 48; @first st.bulk [wide], off, 0;",
    ],
)
def test_zeros_fill_as_many_bytes_as_it_says(fill):
    execution, found = run(fill)
    assert execution.findings == ()
    assert found.tolist() == [0] * (FILLED // 4) + [7] * (LEFT // 4)


def test_it_is_checked_as_stores_are():
    execution, _ = run("@first st.bulk.shared [tile], 72, 0;")
    assert [finding.kind for finding in execution.findings] == ["out_of_bounds"]
    execution, _ = run("st.bulk.shared [tile], 8, 0;")  # by all lanes, which nothing orders
    assert [finding.kind for finding in execution.findings] == ["lockstep"]
    with pytest.raises(UnsupportedInstruction, match="a value that is not 0"):
        run("@first st.bulk.shared [tile], 8, 1;")
