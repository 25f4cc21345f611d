"""The configuration that `multistage` takes when none is named."""

import pytest

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_twin
from tir_schedules.ladders.registry import find
from tir_schedules.ladders.sgemm.multistage import CONFIGS, ENOUGH, RUNG, choose
from tir_schedules.model.launch import ceil_div
from tir_schedules.workloads.gemm import Gemm

CHOSEN = {
    (1, 1, 1): "32x32",
    (256, 256, 256): "32x32",
    (512, 512, 512): "32x64",
    (1024, 1024, 1024): "64x128",
    (2048, 2048, 2048): "128x256_rows_first",
    (4096, 4096, 4096): "128x256",
    (8192, 64, 8192): "32x64",
    (128, 120 * 256, 1): "128x256_rows_first",
    (128, 120 * 256 - 1, 1): "64x128",
    (8192, 1, 8192): "32x32",
    (128, 360 * 256, 1): "128x256",
}


@pytest.mark.parametrize("shape, name", CHOSEN.items(), ids=str)
def test_the_shape_chooses_the_largest_tile_of_which_there_are_enough(shape, name):
    assert choose(Gemm(*shape)) == name


def test_configurations_go_from_large_tiles_to_small_and_the_last_takes_any_shape():
    areas = [config.bm * config.bn for config in CONFIGS.values()]
    assert areas == sorted(areas, reverse=True)
    assert list(ENOUGH) == list(CONFIGS) and list(ENOUGH.values())[-1] == 0


@pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])
def test_both_twins_are_made_in_the_chosen_configuration(make):
    gemm = Gemm(512, 512, 64)
    kernel, named = make(RUNG, gemm, "sm_80"), make(find("sgemm/multistage:32x64")[0], gemm, "sm_80")
    assert kernel == named
    assert kernel.label.startswith("sgemm/multistage:32x64 (") and kernel.grid == (
        ceil_div(512, 64),
        ceil_div(512, 32),
        1,
    )


def test_a_named_configuration_is_taken_whatever_the_shape():
    (rung,) = find("sgemm/multistage:128x256")
    assert rung.fitted(Gemm(1, 1, 1)) is rung


def test_a_rung_without_a_choice_stays_as_it_is():
    (rung,) = find("sgemm/vectorized")
    assert rung.fitted(Gemm(1, 1, 1)) is rung
