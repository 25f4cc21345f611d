"""The smallest fault a kernel can have, one term of its longest sum lost or counted twice, is seen; so is one
that integers hide."""

import pytest
from smallest_faults import FAULTS, outcomes

from tir_schedules.machines.cpu import CpuMachine


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_it_is_wrong_and_the_same_kernel_without_it_is_right(fault):
    faulty, twin = outcomes(fault, "sm_80", CpuMachine())
    (wrong,) = faulty.wrong
    assert wrong.mismatch.inputs == fault.inputs and len(faulty.outputs) == 1 + (fault.inputs == "real")
    assert twin.ok and twin.faults == ()
