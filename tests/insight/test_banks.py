"""The split into phases and wavefronts is the one that the CPU machine counts by; article 004's table and
what follows from it."""

from dataclasses import replace

import numpy as np
import pytest
from article_004 import ARTICLE
from bank_tables import (
    load_phases,
    matrix_addresses,
    matrix_phases,
    picture,
    store_addresses,
    store_phases,
)
from counter_probes import probes

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.insight.banks.requests import request_patterns
from tir_schedules.insight.banks.tiles import FRAGMENTS, SharedTile, bank_table, register_addresses
from tir_schedules.insight.banks.wavefronts import PAIRING, cost, split
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.machine import Watch
from tir_schedules.workloads.half_gemm import HalfGemm

PROBES = [probe for probe in probes("sm_90") if not probe.name.startswith("cp_async")]
A8, A16, B8, B16 = (FRAGMENTS[name] for name in ("m16n8k8 A", "m16n8k16 A", "m16n8k8 B", "m16n8k16 B"))


def of_kernel(name, make, *shape):
    workload = HalfGemm(*shape)
    return workload, compile_kernel(make(find(name)[0], workload, "sm_80"))


def phases_of(request):
    return split(request.addresses, request.width, request.lanes, request.kind in PAIRING)


def assert_split_as_counted(requests):
    for request in requests:
        phases = phases_of(request)
        assert (cost(phases), len(phases)) == (request.wavefronts, request.ideal), request
        assert sorted(lane for phase in phases for lane in phase.lanes) == list(request.lanes)


@pytest.mark.parametrize("kind", sorted({probe.name.split(",")[0] for probe in PROBES}))
def test_pictures_have_the_wavefronts_that_are_counted_for_single_accesses(kind):
    """Loads and stores of 4, 8 and 16 bytes and ldmatrix, in patterns whose cost Nsight Compute has
    confirmed."""
    for probe in PROBES:
        if probe.name.split(",")[0] == kind:
            requests = (
                CpuMachine()
                .run(compile_kernel(probe.kernel), probe.arguments(), ("Y",), watch=Watch())
                .requests
            )
            assert len(requests) == 1 + 32 * (not kind.startswith("store"))  # the tile is filled before loads
            assert_split_as_counted(requests)


@pytest.mark.parametrize("name", ["hgemm/wmma_padded", "hgemm/wmma_shared:article_004"])
def test_pictures_have_the_wavefronts_that_are_counted_for_kernels(name):
    workload, binary = of_kernel(name, load_twin, 200, 150, 70)  # C goes through shared memory, too
    requests = CpuMachine().run(binary, workload.arguments(), workload.outputs, watch=Watch()).requests
    assert {request.kind for request in requests} == {"shared_load", "shared_store", "ldmatrix"}
    assert_split_as_counted(requests)


def test_every_word_is_served_once_to_every_lane_that_asks():
    addresses = [lane // 4 * 128 + lane % 2 * 64 for lane in range(32)]  # pairs of lanes share words
    for width in (4, 8, 16):
        fronts = [front.items() for phase in split(addresses, width) for front in phase.wavefronts]
        served = [(bank, one.word, lane) for front in fronts for bank, one in front for lane in one.lanes]
        asked = [
            (word % 32, word, lane)
            for lane in range(32)
            for word in range(addresses[lane] // 4, (addresses[lane] + width) // 4)
        ]
        assert sorted(served) == sorted(asked)


@pytest.mark.parametrize("fragment", [A8, A16], ids=lambda fragment: fragment.name)
def test_the_table_of_the_article(fragment):
    rows = [
        " ".join(f"{part[0]}~{part[-1]}" for part in row) for row in bank_table(SharedTile(32, 8), fragment)
    ]
    assert rows == ARTICLE.split("\n")[1:-1]


def test_thread_0_of_the_article():
    """It holds (0, 0 1), (0, 8 9), (8, 0 1), (8, 8 9) of 16 x 16 halves."""
    assert {A16.place(register, 0) for register in range(4)} == {(0, 0), (0, 8), (8, 0), (8, 8)}
    assert [A8.place(register, 0) for register in range(2)] == [(0, 0), (8, 0)]
    assert [B16.place(register, 5) for register in range(2)] == [(1, 2), (1, 10)]


@pytest.mark.parametrize(
    "tile, loads, matrices, store",
    [
        (SharedTile(32), 4, 16, 4),
        (SharedTile(32, 8), 1, 4, 8),
        (SharedTile(32, swizzled=True), 1, 4, 4),
        (SharedTile(64), 8, 32, 4),
        (SharedTile(64, swizzled=True), 1, 4, 4),
    ],
    ids=str,
)
def test_padding_takes_conflicts_from_loads_and_gives_some_to_stores(tile, loads, matrices, store):
    assert [cost(load_phases(tile, A16, register)) for register in range(4)] == [loads] * 4
    assert (cost(matrix_phases(tile, A16)), cost(store_phases(tile))) == (matrices, store)
    assert [cost(matrix_phases(tile, fragment)) * 4 for fragment in (A8, B16, B8)] == [
        matrices * 2,
        matrices * 2,
        matrices,
    ]


@pytest.mark.parametrize(
    "tile",
    [SharedTile(32), SharedTile(32, 8), SharedTile(32, 2), SharedTile(32, swizzled=True), SharedTile(64, 8)],
    ids=str,
)
def test_the_machine_counts_the_same_at_these_addresses(tile):
    def counted(access, addresses):
        probe = replace(
            next(probe for probe in PROBES if probe.name.startswith(f"{access},")),
            offsets=np.resize(addresses, 32),
        )
        *_, request = (
            CpuMachine().run(compile_kernel(probe.kernel), probe.arguments(), ("Y",), watch=Watch()).requests
        )
        return request.wavefronts

    for register in range(4):
        assert counted("load_4", register_addresses(tile, A16, register)) == cost(
            load_phases(tile, A16, register)
        )
    if tile.pitch % 16 == 0:
        assert counted("ldmatrix x4", matrix_addresses(tile, A16)) == cost(matrix_phases(tile, A16))
        assert counted("ldmatrix x2", matrix_addresses(tile, A8)) == cost(matrix_phases(tile, A8))
        assert counted("store_16", store_addresses(tile)) == cost(store_phases(tile))


KERNELS = {
    "hgemm/wmma_shared:article_004": SharedTile(32),
    "hgemm/wmma_padded:article_004": SharedTile(32, 8),
    "hgemm/mma_xor_swizzle": SharedTile(32, swizzled=True),
}
LATER = {("hgemm/wmma_shared:article_004", lower), ("hgemm/wmma_padded:article_004", lower)}
"""Rungs of article 004 -> the tile of A they have in shared memory."""


@pytest.mark.parametrize(
    "name, make",
    [
        pytest.param(name, make, marks=pytest.mark.slow if (name, make) in LATER else ())
        for name in KERNELS
        for make in (lower, load_twin)
    ],
    ids=lambda value: value if isinstance(value, str) else "schedule" if value is lower else "twin",
)
def test_the_kernels_do_what_the_arithmetic_says(name, make):
    """Their fragments of A are read, and the tile is filled, at the addresses of the tables."""
    tile = KERNELS[name]
    workload, binary = of_kernel(name, make, 256, 256, 128)
    fill, load, *_ = request_patterns([binary], workload, "A")
    assert load.kind == "ldmatrix" and relative(load.addresses) in (
        matrix_addresses(tile, A16),
        row_by_row(tile),
    )
    assert load.wavefronts == cost(matrix_phases(tile, A16))
    assert relative(fill.addresses) == store_addresses(tile)
    if fill.kind == "shared_store":
        assert fill.wavefronts == cost(store_phases(tile))


def relative(addresses):
    return [address - min(addresses) for address in addresses]


def row_by_row(tile):
    """As wmma's rows are counted: the two matrices of the first 8 rows, then those of the others."""
    return [
        tile.address(row + r, column) for row, column in ((0, 0), (0, 8), (8, 0), (8, 8)) for r in range(8)
    ]


def test_what_lies_in_the_banks():
    assert picture(SharedTile(32, 8), 3, lambda row, piece: piece == 0) == [
        ["[0.0]", "0.1", "0.2", "0.3", "-", "[1.0]", "1.1", "1.2"],
        ["1.3", "-", "[2.0]", "2.1", "2.2", "2.3", "-", "[3.0]"],
        ["3.1", "3.2", "3.3", "-", "[4.0]", "4.1", "4.2", "4.3"],
    ]
    assert picture(SharedTile(32, swizzled=True), 2) == [
        ["0.0", "0.1", "0.2", "0.3", "1.0", "1.1", "1.2", "1.3"],
        ["2.1", "2.0", "2.3", "2.2", "3.1", "3.0", "3.3", "3.2"],
    ]


def test_every_half_of_a_swizzled_tile_has_its_own_place():
    for row in (32, 64, 128):
        tile = SharedTile(row, swizzled=True)
        assert {tile.address(r, c) for r in range(16) for c in range(row)} == set(range(0, 16 * row * 2, 2))
    assert register_addresses(SharedTile(32), A16, 3)[0] == 8 * 64 + 16
