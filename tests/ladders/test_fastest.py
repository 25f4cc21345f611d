"""NAME/fastest: the rung that a ladder's models say is fastest, on any architecture, wherever a rung is
named."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from tir_schedules.api.benching import MORE, notes_on
from tir_schedules.compiler.lower import lower
from tir_schedules.errors import BadInput, TooLarge
from tir_schedules.ladders import fastest, known
from tir_schedules.ladders.hgemm import tile_choice
from tir_schedules.ladders.known import ladder_of
from tir_schedules.ladders.problems import Problem, workloads_of
from tir_schedules.ladders.registry import FAMILIES, find
from tir_schedules.model.ladder import Ladder
from tir_schedules.model.rung import Unasked
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.split_gemm import EmulatedGemm, SplitGemm, float_gemm

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def settled(name, workload, arch="sm_80"):
    (rung,) = find(name)
    return rung.settled(workload, arch)[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_the_one_with_the_least_estimate(family):
    (rung,) = find(f"{family}/fastest")
    shape = tuple(1000 + extent for extent in ladder_of(family).shape)
    workloads = workloads_of(rung, Problem(family, shape))
    assert workloads
    for workload in workloads:
        chosen, _ = rung.settled(workload, Unasked("sm_80"))
        able = []
        for candidate in fastest.candidates(family):
            try:
                able.append(fastest.estimated(candidate, workload))
            except BadInput:
                pass
        best = min(able, key=lambda choice: choice.estimate.microseconds)
        assert chosen.id == best.rung.id and str(best) in chosen.why


@pytest.mark.parametrize("workload", [
    HalfGemm(1536, 1536, 1536, "nt", "float32", output="float16"),
    HalfGemm(99, 103, 145, "nn"),
    Gemm(1000, 3000, 500),
], ids=str)  # fmt: skip
def test_candidates_are_the_choice_and_then_the_least_estimates(workload):
    family = "hgemm" if isinstance(workload, HalfGemm) else "sgemm"
    ranked = fastest.ranked(family, workload, "sm_90a")
    chosen, _ = fastest.fastest(family, workload, "sm_90a")
    assert ranked[0].rung.id == chosen.id
    times = [choice.estimate.microseconds for choice in ranked]
    assert times == sorted(times)
    kernels = {fastest.kernel_of(choice) for choice in ranked}
    assert len(kernels) == len({choice.rung.id for choice in ranked}) == len(ranked) > 16
    found = fastest.first_few(family, workload, "sm_90a", 5)
    assert [rung.id for rung, _ in found] == [choice.rung.id for choice in ranked[:5]]
    for number, (rung, _) in enumerate(found, 1):
        assert f": candidate {number} of 5 is {rung.id}, estimated at " in rung.why


def test_forms_of_one_kind_are_one_candidate():
    gemm = HalfGemm(1536, 1536, 1536, "nt", "float32", output="float16")
    for name in ("tile_shapes", "split_k"):
        (rung,) = find(f"hgemm/{name}")
        forms = rung.worth_timing(gemm)
        assert forms[0].config == rung.fitted(gemm).config
        alike = [
            (*tile_choice.kind_of(one.config), one.config.boxes > 0, one.declared(gemm).parts > 1)
            for one in forms
        ]
        assert len(set(alike)) == len(forms) > 20


def test_what_is_left_to_it_has_candidates_of_several_products():
    workload = float_gemm(1000, 3000, 500, "emulated")
    found = fastest.first_few("sgemm", workload, "sm_90a", 32)
    assert {each.products for _, each in found} == {"float32", "bf16x6"}


def test_an_architecture_decides():
    gemm = HalfGemm(1024, 1024, 1024, accumulate="float16")
    ids = [settled("hgemm/fastest", gemm, arch).base_id for arch in ("sm_75", "sm_80", "sm_90a")]
    assert ids == ["hgemm/wmma_padded", "hgemm/mma_multistage", "hgemm/tile_shapes"]
    large = HalfGemm(4096, 4096, 4096, accumulate="float16")
    ids = [settled("hgemm/fastest", large, arch).id for arch in ("sm_80", "sm_86")]
    assert ids == ["hgemm/mma_multistage", "hgemm/mma_xor_swizzle"]  # sm_86 has 99 KiB for a block
    assert settled("sgemm/fastest", Gemm(256, 256, 256), "sm_75").id == "sgemm/shared_tile"
    assert settled("hgemm/fastest", gemm, Unasked("sm_80")).base_id == "hgemm/tile_shapes"
    odd = HalfGemm(1023, 1023, 1023, accumulate="float16")
    assert settled("hgemm/fastest", odd).base_id == "hgemm/unaligned"
    assert "element by element" in str(fastest.estimated(*find("hgemm/mma_multistage"), odd))


def test_where_there_is_none_it_says_what_most_rungs_need():
    with pytest.raises(BadInput, match="has no rung for 5x5x5: sgemm/naive needs sm_75 or later"):
        settled("sgemm/fastest", Gemm(5, 5, 5), "sm_70")


def test_products_may_be_left_to_it():
    """The faster of float32 and of what is as accurate; on an architecture that has no tensor cores for
    float32's range, float32."""
    (rung,) = find("sgemm/fastest")
    too_long = EmulatedGemm(2**25, 1, 33)  # rows of parts are filled up to 64 elements
    assert rung.settled(too_long, "sm_80")[1] == Gemm(2**25, 1, 33)
    assert EmulatedGemm(5376, 64, 31).meant == (Gemm(5376, 64, 31),)  # few terms: FMA are more accurate
    assert len(EmulatedGemm(5376, 64, 32).meant) == 2
    for shape, arch in product([(4096, 4096, 4096), (3000, 5, 70)], ["sm_75", "sm_80", "sm_90a"]):
        found, workload = rung.settled(float_gemm(*shape, "emulated"), arch)
        able = {}
        for products in ("float32", "bf16x6"):
            asked = float_gemm(*shape, products)
            able |= {(one.rung.id, asked): one.estimate.microseconds for one in choices(asked, arch)}
        assert (found.id, workload) == min(able, key=able.__getitem__)
        assert f"{shape[2]} emulated, by products of {workload.products}, is {found.id}" in found.why
    assert (
        lower(rung, float_gemm(100, 36, 1000, "emulated"), "sm_80").source
        == lower(settled("sgemm/fastest", SplitGemm(100, 36, 1000)), SplitGemm(100, 36, 1000), "sm_80").source
    )


def choices(workload, arch):
    for candidate in fastest.candidates("sgemm"):
        try:
            yield fastest.able(candidate, workload, arch)
        except BadInput:
            pass


def test_a_kernel_of_it_is_that_of_the_rung():
    (rung,) = find("sgemm/fastest")
    gemm = Gemm(40, 36, 33)
    assert lower(rung, gemm, "sm_80").source == lower(settled("sgemm/fastest", gemm), gemm, "sm_80").source


@pytest.mark.parametrize(
    "name, workload, message",
    [
        ("sgemm/fastest:64x64", None, "leave out '64x64'"),
        ("sgemm/fastes", None, "did you mean 'sgemm/fastest'"),
        ("bare/fastest", None, "the ladder bare has no models"),
        (
            "hgemm/fastest",
            HalfGemm(64, 64, 64, accumulate="float32", dtype="bfloat16"),
            "has no rung for 64x.* needs sm_90a, not sm_75",
        ),
    ],
)
def test_what_it_is_not(name, workload, message, monkeypatch):
    monkeypatch.setitem(known.LOADED, "bare", Ladder("bare", (), Gemm, ("M",), (1,)))
    with pytest.raises(BadInput, match=message):
        settled(name, workload, "sm_75")


def test_it_is_one_that_takes_the_shape():
    """M of a tall C is blocks along y, of which a grid has 65535; float32 sums of odd rows take more shared
    memory than sm_75 has, but for those of small tiles."""
    tall = Gemm(18_443_463, 65, 32)
    assert fastest.estimated(*find("sgemm/thread_tile_2d"), tall).rung == settled("sgemm/fastest", tall)
    with pytest.raises(TooLarge, match=r"^sgemm/serpentine for .* 144090 blocks along y"):
        fastest.estimated(*find("sgemm/serpentine"), tall)
    odd = HalfGemm(17, 33, 100, accumulate="float32")
    assert settled("hgemm/fastest", odd, "sm_75").id == "hgemm/wmma_padded:32x64"


def test_commands_say_which_it_is(tool):
    code, out, err = tool("run", "sgemm/fastest", "--mnk", "40,36,33", "--machine", "cpu")
    assert code == 0 and "sgemm/split_k:32x32" in out
    assert "sgemm/fastest on 40x36x33 is sgemm/split_k:32x32, estimated for an H100 or H200: 4 tiles" in err
    asked = ("--arch", "sm_80", "--machine", "cpu", "--mnk", "16,16,16", "--accumulate", "float32")
    code, out, _ = tool("run", "hgemm/fastest", *asked, "--json")
    assert code == 0 and {row["rung"].split(":")[0] for row in json.loads(out)} == {"hgemm/unaligned"}
    assert all("hgemm/fastest on 16x16x16" in row["why"] for row in json.loads(out))
    code, out, err = tool("run", "sgemm/fastest", "--mnk", "100,36,1000", "--machine", "cpu", "--emulated")
    assert code == 0 and "36x1000 bf16x6" in out and "36x1000 emulated, by products of bf16x6, is" in err
    code, _, err = tool("run", "sgemm", "--emulated", "--machine", "cpu")
    assert code == 2 and err.endswith("sgemm/naive multiplies float32: --emulated is for sgemm/fastest\n")
    _, out, _ = tool("inspect", "sgemm/split_k", "--mnk", "40,36,33", "--json")
    assert "sgemm/split_k:32x32, estimated for an H100 or H200" in json.loads(out)["why"]
    code, out, err = tool("emit", "reduce/fastest", "--n", "1000")
    assert code == 0 and "reduce_single_pass" in out and "reduce/fastest on 1000" in err
    code, _, err = tool("trace", "sgemm/fastest", "--arch", "sm_50")
    assert code == 2 and err.count("\n") == 1
    for asked in (["emit", "sgemm/fastest"], ["list", "sgemm", "--mnk", "5,5,5"]):
        code, out, err = tool(*asked, "--arch", "80")
        assert (code, out, err.count("\n")) == (2, "", 1) and "did you mean sm_80?" in err
    assert "sgemm/fastest" in tool("list", "sgemm")[1]


def test_a_shape_says_what_its_rungs_take(tool):
    asked = ("list", "hgemm", "--mnk", "1023,1023,1023", "--accumulate", "float16", "--arch", "sm_80")
    code, out, _ = tool(*asked, "--json")
    found = json.loads(out)
    rungs = {row["rung"]: row for row in found["rungs"]}
    assert code == 0 and found["fastest"]["rung"].startswith("hgemm/unaligned:")
    assert rungs["hgemm/mma_xor_swizzle"]["microseconds"] < rungs["hgemm/wmma_async"]["microseconds"]
    assert "element by element" in rungs["hgemm/wmma_async"]["why"]
    assert "needs sm_90a" in rungs["hgemm/repacked"]["why"] and not rungs["hgemm/repacked"]["microseconds"]
    lines = map(str.split, tool("list", "sgemm", "--mnk", "40,36,33")[1].splitlines())
    assert ["sgemm/split_k:32x32", "2.2"] in [line[:2] for line in lines]
    code, out, _ = tool("list", "sgemm", "--mnk", "40,36,33", "--layout", "nt", "--json")
    found = json.loads(out)
    assert code == 0 and found["fastest"]["rung"] is None and "use sgemm/bf16x6" in found["fastest"]["why"]
    assert not any(row["microseconds"] for row in found["rungs"])
    for arguments in (["--mnk", "1,2,3"], ["sgemm", "--n", "5"], ["sgemm", "--mnk", "0,1,1"]):
        code, _, err = tool("list", *arguments)
        assert code == 2 and err.count("\n") == 1


def test_a_benchmark_notes_why():
    (split,), (slow,), (standing,) = map(find, ("sgemm/split_k", "hgemm/wmma_async", "sgemm/fastest"))
    gemm, odd = Gemm(40, 36, 33), HalfGemm(63, 63, 63)
    jobs = [(split, gemm), (slow, odd), (slow, HalfGemm(64, 64, 64)), (standing, gemm)]
    first, second, third, more = notes_on(jobs, "sm_80", ["sgemm/split_k"])
    assert more == MORE
    assert (
        "split_k:32x32" in first and "element by element" in second and third.startswith("sgemm/fastest on")
    )
    assert notes_on(jobs, "sm_80", ["sgemm", "hgemm"]) == []
    several = [(replace(rung, candidates=2), workload) for rung, workload in jobs[-1:]]
    assert MORE not in notes_on(several, "sm_80", [])


def test_estimates_of_recorded_sizes_are_near():
    """Every rung with a model, on the sizes that its figures are from."""
    for family in ("sgemm", "hgemm", "reduce"):
        rows = json.loads((RESULTS / f"bench_{family}_h200.json").read_text())["rows"]
        for row in (row for row in rows if row["form"] == "schedule"):
            ((rung,), workload) = find(row["name"]), ladder_of(family).workload_class(**row["workload"])
            if rung.name in ladder_of(family).estimators:
                micros = fastest.estimated(rung, workload).estimate.microseconds
                assert 0.75 < micros / row["median_us"] < 1.3, (row["name"], row["shape"], micros)


def test_estimates_of_rows_that_start_anywhere_are_near():
    """Of C that is written element by element, one that L2 holds and one that it does not."""
    recorded = RESULTS / "drawn_sgemm_h100.json", RESULTS / "split_precision" / "drawn_bf16x6_h100.json"
    rows = [row for path in recorded for row in json.loads(path.read_text())["rows"]]
    seen = 0
    for row in (row for row in rows if row["form"] == "schedule"):
        ((rung,), gemm) = find(row["name"]), float_gemm(**row["workload"])
        if gemm.n % gemm.vector and gemm.m * gemm.n > 2**20:
            micros, seen = fastest.estimated(rung, gemm).estimate.microseconds, seen + 1
            assert 0.75 < micros / row["median_us"] < 1.3, (row["name"], row["shape"], micros)
    assert seen > 5
