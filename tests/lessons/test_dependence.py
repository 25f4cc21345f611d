"""PTX in which what a mechanism delivers is thrown away."""

import pytest

from tir_schedules.lessons.dependence import NEEDS

DECLARED = ".reg .f32 %f<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n"


@pytest.mark.parametrize(
    "what, line, changed",
    [
        (
            "shared memory",
            "@%p1 ld.shared.v2.f32 {%f1, %f2}, [%r1];",
            "@%p1 ld.shared.v2.f32 {%f1, %f2}, [%r1]; @%p1 mov.b32 %f1, 0; @%p1 mov.b32 %f2, 0;",
        ),
        ("shared memory", "ld.shared.u64 %rd1, [%r1];", "ld.shared.u64 %rd1, [%r1]; mov.b64 %rd1, 0;"),
        ("shared memory", "ld.global.nc.f32 %f5, [%rd1];", None),
        ("shared memory", "st.shared.f32 [%r1], %f1;", None),
        (
            "ldmatrix",
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r5];",
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r5]; mov.b32 %r1, 0;",
        ),
        ("mma", "mma.sync.aligned.m16n8k8.f32 {%f1}, {%r1}, {%r3}, {%f1};", ";"),
        ("mma", "mma.sync.aligned.m16n8k8.f32 {%f1}, {%r1}, {%r3}, {%f2};", " mov.b32 %f1, %f2;"),
        ("mma", "wgmma.mma_async.sync.aligned.m64n8k16.f32 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0;", None),
        ("wgmma", "wgmma.mma_async.sync.aligned.m64n8k16.f32 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0;", ""),
        (
            "shuffles",
            "shfl.sync.down.b32 %r6|%p2, %r7, 16, 31, -1;",
            "shfl.sync.down.b32 %r6|%p2, %r7, 16, 31, -1; mov.b32 %r6, 0;",
        ),
        ("cp.async", "cp.async.ca.shared.global [%r1], [%rd2], 4;", ""),
        ("cp.async", "cp.async.commit_group;", None),
    ],
)
def test_ptx_without_a_mechanism(what, line, changed):
    _, change = NEEDS[what]
    assert change(DECLARED + line) == DECLARED + (line if changed is None else changed)
