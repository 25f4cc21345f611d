"""The smallest fault a kernel can have, one term of its longest sum lost or counted twice, is seen; so is one
that integers hide."""

import pytest
import smallest_faults
from smallest_faults import FAULTS, LONG_NN, outcomes

from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

# Faults of kinds that others have, too: in B as in A, on other shapes and in other sums.
LATER = [
    (LONG_NN, "A rounded to bfloat16"),
    (LONG_NN, "B rounded to bfloat16"),
    (HalfGemm(3, 5, 300), "A rounded to bfloat16"),
    (HalfGemm(3, 5, 65535), "the last term lost"),
    (HalfGemm(64, 64, 16384, "nt", "float32"), "the last 16 of K lost"),
    (Gemm(8, 8, 40000), "terms of B rounded to TF32"),
    (Gemm(3, 5, 37), "right where it is positive"),
]
CASES = [
    pytest.param(fault, marks=pytest.mark.slow) if (fault.workload, fault.what) in LATER else fault
    for fault in FAULTS
]


@pytest.fixture(scope="module", autouse=True)
def each_source_once():
    """Several faults are of one twin on one workload."""
    found, outcome = {}, smallest_faults.outcome

    def once(rung, workload, source, arch, machine):
        key = rung.id, workload, source
        found[key] = found.get(key) or outcome(rung, workload, source, arch, machine)
        return found[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smallest_faults, "outcome", once)
        yield


@pytest.mark.parametrize("fault", CASES, ids=str)
def test_it_is_wrong_and_the_same_kernel_without_it_is_right(fault):
    faulty, twin = outcomes(fault, "sm_80", CpuMachine())
    (wrong,) = faulty.wrong
    assert wrong.mismatch.inputs == fault.inputs and len(faulty.outputs) == 1 + (fault.inputs == "real")
    assert twin.ok and twin.faults == ()


def test_what_is_left_for_later_are_faults_of_the_list():
    assert {(fault.workload, fault.what) for fault in FAULTS} >= set(LATER)
