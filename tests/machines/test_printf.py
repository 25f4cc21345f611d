"""printf and assert: what a kernel writes is what a GPU writes, in the order it was executed."""

import ctypes

import numpy as np
import pytest
from cuda_kernels import run

from tir_schedules.machines.cpu.invocation import PRINTED_BYTES

SOURCE = r"""
#include <cassert>
#include <cstdio>
struct Error { const char* name; int number; };
__constant__ char from_const[] = "const";
__device__ __noinline__ void shout(const Error& e, int t) { printf("%s %d from %d\n", e.name, e.number, t); }

extern "C" {
__global__ void k(int* Y) {
  const int t = threadIdx.x;
  if (t % 32 == 3)
    printf("%d %i %u %x %X %o %c %s %p %% %f %e %g %G %F %E %a %A %ld %lu %lld %llu %llx %hd %hu %hhd"
           " %hhu %zu %d %s %d %.1f\n",
           -t, t, 4000000000u + t, 255, 255, 8, 'Z', "text", (void*)0x1234, 3.14159, 12345.678, 1e-7, 1e20,
           2.5, 1e-300, 1.0, 0.5, -5L, 6UL, -6000000000LL, 18000000000000000000ULL, 0xfedcba9876543210ULL,
           70000, 70000, 300, 300, (size_t)77, 1, "", 2, 0.25f);
  Y[t] = 0;
}
__global__ void widths(int* Y) {
  if (threadIdx.x == 0)
    printf("[%5d][%-5d][%05d][%+d][% d][%#x][%#o][%10s][%-10s][%.2s][%*d][%-*d][%.*f][%8.3f][%+.2e]"
           "[%.0f][%.*f][%5c][%5%][%k]\n", 42, 42, 42, 42, 42, 255, 8, "right", "left", "cut", 7, 99, 7, 99,
           2, 1.23456, 3.14159, 31415.9, 2.5, -1, 1.25, 'c');
  Y[threadIdx.x] = 0;
}
__global__ void results(int* Y) {
  char own[8] = {'o', 'w', 'n', char('0' + threadIdx.x % 8), 0};
  __shared__ char shared[8];
  if (threadIdx.x < 6) shared[threadIdx.x] = "share"[threadIdx.x];
  __syncthreads();
  Y[threadIdx.x] = threadIdx.x < 2 ? printf("%s %s %s\n", own, shared, from_const) : printf("");
}
__global__ void diverges(int* Y) {
  const int t = threadIdx.x;
  if (t % 2) printf("odd %d\n", t); else printf("even %d\n", t);
  if (t == 5) { Error e = {"late", 7}; shout(e, t); }
  for (int i = 0; i < t - 60; i++) printf("%d of %d\n", i, t);
  Y[t] = 0;
}
__global__ void floods(int* Y) {
  for (int i = 0; i < 3000; i++) printf("block %d line %06d ..........\n", blockIdx.x, i);
  Y[threadIdx.x + blockIdx.x * blockDim.x] = 0;
}
__global__ void strays(int* Y) { printf("%s\n", (const char*)Y + 256 + threadIdx.x); Y[threadIdx.x] = 0; }
__global__ void waits(int* Y) {
  __shared__ int s[64];
  s[threadIdx.x] = 0;
  if (blockIdx.x == 1 && threadIdx.x < 32) assert(Y == 0);
  __syncthreads();
  Y[threadIdx.x + blockIdx.x * blockDim.x] = 1 + s[63 - threadIdx.x];
}
__global__ void asserts(int* Y) {
  assert(blockIdx.x < 1 || threadIdx.x != 37 && "50% of it");
  Y[threadIdx.x + blockIdx.x * blockDim.x] = 1;
}
}
"""
C = ctypes.CDLL(None)


def formatted(text, *values):
    """What the C library makes of it."""
    room = ctypes.create_string_buffer(4096)
    C.snprintf(room, 4096, text.encode(), *values)
    return room.value.decode()


def printed(entry, **options):
    _, execution = run(SOURCE, entry, **options)
    assert execution.findings == ()
    return execution.printed


def test_a_format_of_each_kind():
    """From a lane of each warp; 32 arguments are the most that CUDA prints."""
    rest = (
        " 4000000003 ff FF 10 Z text 0x1234 % 3.141590 1.234568e+04 1e-07 1E+20 2.500000"
        " 1.000000E-300 0x1p+0 0X1P-1 -5 6 -6000000000 18000000000000000000 fedcba9876543210"
        " 4464 4464 44 44 77 1  2 0.2\n"
    )
    assert printed("k") == "-3 3" + rest + "-35 35" + rest.replace("4000000003", "4000000035")


def test_flags_widths_and_precisions():
    double = ctypes.c_double
    expected = formatted("[%5d][%-5d][%05d][%+d][% d][%#x][%#o]", 42, 42, 42, 42, 42, 255, 8)
    expected += formatted("[%10s][%-10s][%.2s][%*d][%-*d]", b"right", b"left", b"cut", 7, 99, 7, 99)
    expected += formatted("[%.*f][%8.3f]", 2, double(1.23456), double(3.14159))
    expected += formatted("[%+.2e][%.0f][%.*f]", double(31415.9), double(2.5), -1, double(1.25))
    expected += formatted("[%5c]", ord("c"))
    assert printed("widths") == expected + "[%5%][%k]\n"


def test_strings_of_every_space_and_the_number_of_arguments():
    result, execution = run(SOURCE, "results")
    assert execution.printed == "own0 share const\nown1 share const\n" and execution.findings == ()
    assert result.tolist() == [3, 3] + [0] * 62


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["forward", "reverse"])
def test_lanes_print_in_the_order_they_are_executed(order):
    """Warp after warp; lanes that go one way before those that go the other, in their order."""
    lines = printed("diverges", warp_order="forward" if order[0] == 0 else "reverse").splitlines()
    own = {t: [f"{'odd' if t % 2 else 'even'} {t}"] for t in range(64)}
    own[5].append("late 7 from 5")
    for t in range(61, 64):
        own[t] += [f"{i} of {t}" for i in range(t - 60)]
    assert sorted(lines) == sorted(line for each in own.values() for line in each)
    for first in (0, 1):
        asked = [
            f"{'odd' if first else 'even'} {t}"
            for warp in order
            for t in range(32 * warp + first, 32 * warp + 32, 2)
        ]
        assert [line for line in lines if line in asked] == asked
    for each in own.values():
        assert [line for line in lines if line in each] == each


def test_what_goes_beyond_the_buffer_is_cut_and_said_to_be():
    text = printed("floods", threads=32, grid=2)
    kept, _, said = text.rpartition("\n[")
    assert len(kept.encode()) == PRINTED_BYTES and kept.startswith("block 0 line 000000 ..........\n")
    assert said == "printf: what was printed beyond 1048576 bytes is left out]\n"


def test_a_string_that_is_none_is_found():
    _, execution = run(SOURCE, "strays")
    assert [finding.kind for finding in execution.findings] == ["out_of_bounds"]
    assert "Y[64]" in execution.findings[0].message and execution.printed == ""


def test_an_assert_that_fails_says_what_a_gpu_says_and_ends_the_launch():
    result, execution = run(SOURCE, "asserts", grid=3)
    (finding,) = execution.findings
    assert finding.message == (
        f"test_kernel.cu:{finding.location.line}: void asserts(int *): block: [1,0,0], thread: [37,0,0]"
        ' Assertion `blockIdx.x < 1 || threadIdx.x != 37 && "50% of it"` failed.'
    )
    assert (finding.kind, finding.block, finding.warp, finding.lane) == ("assertion", (1, 0, 0), 1, 5)
    assert result.sum() < 128 and result[:64].all() and not result[128:].any()


@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_threads_that_wait_for_those_of_a_failed_assert_are_no_fault(order):
    result, execution = run(SOURCE, "waits", grid=3, warp_order=order)
    assert [(finding.kind, finding.count) for finding in execution.findings] == [("assertion", 32)]
    first, others = (result[:64], result[64:]) if order == "forward" else (result[128:], result[:128])
    assert first.all() and not others.any()


def test_what_is_printed_before_a_fault_is_kept():
    source = SOURCE.replace(
        "assert(block", 'if (threadIdx.x < 2) printf("at %d\\n", threadIdx.x);\n  assert(block'
    )
    _, execution = run(source, "asserts", grid=2)
    assert execution.printed == 2 * "at 0\nat 1\n"
    assert np.all([finding.kind == "assertion" for finding in execution.findings])
