"""Warp states by Nsight Compute's names, and how busy the parts of an SM are."""

import numpy as np
import pytest
from sass import sass

from tir_schedules.insight.times.page import COLOURS
from tir_schedules.timing.gpus import find_table
from tir_schedules.timing.listing import parsed
from tir_schedules.timing.prediction import REASONS
from tir_schedules.timing.simulation import Simulated
from tir_schedules.timing.states import MEANINGS, STATES, busy_of, states_of

TABLE = find_table("h100")


def test_every_reason_has_a_state_of_its_own_that_is_explained():
    assert set(STATES) == set(REASONS) and len({*STATES.values()}) == len(STATES)
    assert {"selected", *STATES.values()} == MEANINGS.keys() == COLOURS.keys()


def test_states_are_cycles_of_warps():
    assert states_of({"queue": 5, "banks": 7, "new_one": 1}, 3) == {
        "selected": 3, "MIO throttle": 5, "dispatch stall": 7, "new one": 1
    }  # fmt: skip


def test_units_are_busy_for_a_share_of_the_cycles():
    texts = "FFMA R0, R1, R2, R3", "HMMA.16816.F32 R4, R8, R10, R4", "LDS R0, [R1]"
    code = [*parsed(sass(*texts), "k")]
    issued = np.array([200, 40, 10])
    done = Simulated(100, np.zeros((3, 9)), issued, wavefronts=25, requested=0, missed=640, written=0)
    busy = busy_of(done, code, TABLE, "l2", 32.0)
    assert busy == pytest.approx({
        "issue slots": 0.625, "tensor cores": 0.6, "fp32 units": 0.5, "shared memory and L1": 0.25, "L2": 0.2
    })  # fmt: skip
    assert [*busy][0] == "issue slots"


def test_tensor_cores_are_busy_with_a_warpgroups_products():
    code = [*parsed(sass("HGMMA.64x256x16.F32 R24, gdesc[UR4], R24"), "k")]
    done = Simulated(
        1000, np.zeros((1, 9)), np.array([20]), wavefronts=0, requested=0, missed=0, written=0
    )  # fmt: skip
    share = 20 * 64 * 256 * 16 / 4 / 1000 / TABLE.tensor_products
    assert busy_of(done, code, TABLE, "l2", 32.0)["tensor cores"] == pytest.approx(share)
