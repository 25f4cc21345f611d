"""What `inspect` shows of kernels whose figures can be worked out by hand."""

import json
import re

import pytest

from tir_schedules.cli import main as cli
from tir_schedules.console import print_aligned, side_by_side
from tir_schedules.errors import CheckFailed
from tir_schedules.insight.inspection import twins
from tir_schedules.insight.inspection.listing import opcodes, ptx_lines, sass_lines
from tir_schedules.insight.inspection.views import heading
from tir_schedules.insight.metrics import formats, rungs
from tir_schedules.ladders.registry import find, ladder
from tir_schedules.machines.cpu.catalogue import MIX
from tir_schedules.workloads.gemm import Gemm


def inspected(capsys, *arguments, code=0):
    assert cli.main(["inspect", *arguments]) == code
    return capsys.readouterr().out


def cells(out, name):
    """Schedule's and twin's cell of a row."""
    (line,) = (line for line in out.splitlines() if line.strip().startswith(f"{name}  "))
    return re.split(r"\s{2,}", line.strip())[1:]


def test_bank_conflicts_sectors_occupancy_and_roofline_of_a_rung(capsys):
    """Interleaved on 2 blocks of 256: a warp loads and stores at strides of 2, 4 ... words."""
    out = inspected(capsys, "reduce/interleaved", "--n", "512", "--arch", "sm_90")
    assert "reduce/interleaved on 512 int32, compiled for sm_90; the first of 2 launches" in out
    assert cells(out, "grid") == ["2x1x1", "2x1x1"] and cells(out, "static shared bytes") == [
        "1,024",
        "1,024",
    ]
    # Steps of stride 2 and 4 in 4 and 2 warps; then one warp with 32, 16 and 8 threads at strides of 8, 16
    # and 32, and with 4, 2 and 1.
    steps = 4 * 2 + 2 * 4 + 8 + 8 + 8 + 4 + 2 + 1
    assert cells(out, "loads: wavefronts (ideal)")[0] == f"{2 * (2 * steps + 1)} ({2 * (2 * 12 + 1)})"
    assert cells(out, "loads: conflicts")[0] == f"{4 * (steps - 12)}"
    assert cells(out, "stores: wavefronts (ideal)")[0] == f"{2 * (steps + 8)} ({2 * (12 + 8)})"
    assert cells(out, "loads: sectors per request (ideal)") == ["4 (4)", "4 (4)"]
    assert cells(out, "warps per SM")[0] == "64 of 64, 100.0 %" and cells(out, "limited by")[0] == "warps"
    assert (
        cells(out, "flops") == ["511", "511"]
        and cells(out, "arithmetic intensity, compulsory")[0] == "0.25 flop/byte: memory"
    )
    assert (
        "H200 SXM gives 66.9 TFLOPS and 4800 GB/s; from an arithmetic intensity of 13.94 flop/byte on" in out
        and "cp.async" not in out
    )


def test_of_several_launches_the_rung_s_own_is_shown(capsys):
    """One that copies A and B stands before it, and one that adds up parts of K behind it."""
    asked = ("hgemm/split_k:64x64,splits=2", "--mnk", "40,36,133", "--arch", "sm_90")
    out = inspected(capsys, *asked)
    assert "number 2 of 3 launches" in out and cells(out, "grid") == ["1x1x2", "1x1x2"]
    assert "hgemm_split_k(" in inspected(capsys, *asked, "--lines")
    for kernel in json.loads(inspected(capsys, *asked, "--json"))["kernels"].values():
        assert kernel["grid"] == [1, 1, 2]
        assert [len(kernel[name]) for name in ("earlier_launches", "later_launches")] == [1, 1]


def test_json_has_all_launches_and_the_text_of_lines(capsys):
    found = json.loads(inspected(capsys, "reduce/interleaved", "--n", "512", "--json"))
    assert (found["rung"], found["workload"], found["arch"], found["gpu"]) == (
        "reduce/interleaved", {"n": 512, "dtype": "int32"}, "sm_80", "A100 SXM 80 GB"
    )  # fmt: skip
    for kernel in found["kernels"].values():
        assert kernel["grid"] == [2, 1, 1] and [launch["grid"] for launch in kernel["later_launches"]] == [
            [1, 1, 1]
        ]
        assert kernel["resources"]["shared_bytes"] == 1024 and kernel["occupancy"]["arch"] == "sm_80"
        sectors = [sum(one["counters"]["accesses"][f"global_{what}"]["cost"] for what in ("load", "store"))
                   for one in (kernel, *kernel["later_launches"])]  # fmt: skip
        assert kernel["roofline"]["moved_bytes"] == 32 * sum(sectors) and kernel["roofline"]["flops"] == 511
    texts = [
        line["text"]
        for line in found["kernels"]["twin"]["counters"]["lines"]
        if "shared_store" in line["accesses"]
    ]
    assert any("tile[first] += tile[first + s];" in text for text in texts)


def test_conflicts_are_shown_with_their_lines_or_not_at_all(capsys):
    out = inspected(capsys, "reduce/interleaved", "--conflicts", "--n", "512")
    twin = out[out.index("per request  twin") :].splitlines()[1:]
    found = [re.split(r"\s{2,}", line.strip()) for line in twin if line]
    assert [(row[1], row[-1]) for row in found] == [
        (kind, "tile[first] += tile[first + s];") for kind in ("load", "store")
    ]
    requests, wavefronts, ideal, ratio = found[1][2:6]
    assert (
        int(wavefronts.replace(",", "")) / int(requests.replace(",", ""))
        == pytest.approx(float(ratio), abs=0.01)
        and ideal == requests
    )
    out = inspected(capsys, "reduce/sequential", "--conflicts", "--n", "512")
    assert "twin: no bank conflicts: all 90 requests to shared memory take the ideal wavefronts" in out
    assert "it does not use shared memory" in inspected(
        capsys, "sgemm/naive", "--conflicts", "--mnk", "64,64,64"
    )


def test_each_line_of_the_kernel_is_shown_with_what_it_cost(capsys):
    out = inspected(capsys, "sgemm/shared_tile", "--lines", "--mnk", "64,64,64")
    schedule, twin = out[out.index(" schedule\n") :].split(" twin\n")
    assert "#define" not in schedule and "extern" in schedule and twin.count("__syncthreads();") == 2
    multiply = next(line for line in twin.splitlines() if "tile_a[ty][k] * tile_b[k][tx]" in line)
    # A warp reads one word of A (float4s of it, where ptxas merges) and 32 of B for each of 64 steps.
    share, wavefronts = re.split(r"\s{2,}", multiply.strip())[:2]
    assert float(share.split()[0]) > 30 and int(wavefronts.split()[0].replace(",", "")) >= 4 * 32 * 64
    shares = [float(line.split(" %")[0]) for line in twin.splitlines() if re.match(r"[\d.]+ %", line)]
    assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))


def test_lines_of_a_function_outside_the_kernel_are_shown_after_it(capsys):
    out = inspected(capsys, "hgemm/wmma_naive", "--lines", "--mnk", "64,64,32")
    closing = out.rindex("\n" + next(line for line in out.splitlines()[::-1] if line.endswith(" }")))
    assert (
        "wmma::mma_sync(c[i][j], step.a[i]" in out[closing:]
        and "wmma::load_matrix_sync(b[j]" in out[closing:]
    )


def test_code_side_by_side_comes_after_how_often_each_instruction_stands_in_it(capsys):
    out = inspected(capsys, "reduce/interleaved", "--sass", "--n", "512")
    table, code = out.split("not how often it is executed\n")
    assert cells(table, "LDS") == [str(len(re.findall(r"\bLDS\b", column))) for column in halves(code)]
    assert code.splitlines()[1].split() == ["schedule", "twin"] and "/*0" not in code and "NOP" not in code
    out = inspected(capsys, "reduce/interleaved", "--ptx", "--n", "512")
    assert int(cells(out, "ld.shared")[0]) == 3 and ".loc" not in out and ".debug" not in out


def halves(code):
    """The two columns of code side by side."""
    lines = code.splitlines()
    middle = next(line for line in lines if line.startswith("schedule")).index("twin")
    return "\n".join(line[:middle] for line in lines), "\n".join(line[middle:] for line in lines)


def test_code_stands_side_by_side_or_whole_one_below_the_other(capsys, monkeypatch):
    assert list(side_by_side([["schedule", "abc"], ["twin", "d"]])) == ["schedule  twin", "abc       d"]
    rows = [("3.1 %", "12,288 (4,096)", "17", "C[row * N + column] = sum;"), ("", "", "18", "}")]
    columns = ("instructions", "wavefronts (ideal)", "line", "twin")
    print_aligned(columns, rows)
    assert len(capsys.readouterr().out.splitlines()) == 3
    monkeypatch.setattr("tir_schedules.console.terminal_width", lambda: 60)
    print_aligned(columns, rows)
    code = [
        "    twin",
        "17  C[row * N + column] = sum;",
        "    ^ instructions 3.1 %, wavefronts (ideal) 12,288 (4,096)",
        "18  }",
    ]
    assert capsys.readouterr().out.splitlines() == code


def test_several_rungs_are_one_table(capsys):
    names = ("reduce/interleaved", "reduce/sequential")
    rows = inspected(capsys, *names, "--n", "512").splitlines()
    assert [row.split()[0] for row in rows[1:5]] == [names[0], "twin", names[1], "twin"]
    assert re.split(r"\s{2,}", rows[1])[4:7] == ["190 3.8x", "110 2.75x", "-"] and "x" not in rows[
        3
    ].removeprefix(names[1])
    several = json.loads(inspected(capsys, *names, "--n", "512", "--json"))
    assert [one["rung"] for one in several] == list(names)


def test_a_kernel_that_does_not_compile_is_named_and_the_other_shown(capsys, monkeypatch):
    def broken(rung, workload, arch):
        raise CheckFailed("reduce/divergent has no twin")

    monkeypatch.setattr("tir_schedules.subjects.compiling.load_twin", broken)
    assert cli.main(["inspect", "reduce/divergent", "--n", "512"]) == 1
    out, err = capsys.readouterr()
    assert cells(out, "grid") == ["2x1x1", "-"]
    assert err == "tir-schedules: reduce/divergent (twin): reduce/divergent has no twin\n"
    for argument in ("--json", "--lines", "--conflicts", "--sass", "--ptx", "reduce/interleaved"):
        assert cli.main(["inspect", argument, "reduce/divergent", "--n", "512"]) == 1
        assert "reduce/divergent" in capsys.readouterr().out


@pytest.mark.parametrize("arguments, message", [
    (["sgemm/naive", "--mnk", "4096,4096,4096"], "at most as much work as --mnk 1024,1024,1024"),
    (["reduce/shuffle", "--n", "2^28"], "as much work as --n 33554432"),
    (["sgemm", "--lines"], f"--lines shows one rung, but {len(ladder('sgemm'))} are named"),
    (["sgemm/naive", "--gpu", "h201"], "did you mean 'h200'"),
    (["sgemm/naive", "--arch", "sm_99"], "sm_99"),
    (["sgemm/naive", "--n", "5"], "--n is for reduce"),
    (["sgemm/naive", "--sass", "--lines"], "not allowed with"),
])  # fmt: skip
def test_what_cannot_be_inspected_is_one_line(arguments, message, capsys, monkeypatch):
    monkeypatch.setattr(rungs, "kept_metrics", lambda *given: pytest.fail("counts"))
    assert cli.main(["inspect", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


def test_a_configuration_that_is_chosen_by_the_shape_is_named():
    (rung,) = find("sgemm/multistage")
    small, large = (
        twins.Inspection(rung, Gemm(size, size, size), "sm_80", None, {}, {}) for size in (256, 4096)
    )
    assert (
        [small.name, large.name]
        == [f"sgemm/multistage:{rung.choose(one.workload)}" for one in (small, large)]
        != [rung.id] * 2
    )
    assert heading(small, True).startswith(f"{small.name} on 256x256x256 (small")


def test_findings_of_the_cpu_machine_are_told(capsys):
    """Also those of a configuration that is shown for its fault: as `run`, it ends with 1."""
    out = inspected(capsys, "reduce/unrolled_warp:article", "--n", "1024", code=1)
    line = r"^reduce/unrolled_warp:article \((.*?)\): (\d+) findings? of the CPU machine"
    told = dict(re.findall(line, out, re.M))
    launches = [f"{form}, launch {number} of 2" for form in twins.FORMS for number in (1, 2)]
    assert [*told] == launches and cells(out, "findings") == [told[launches[0]], told[launches[2]]]
    assert "missing __syncwarp at cuda_reference/reduce/fold.cuh:" in out
    for view in ("--conflicts", "--json"):
        inspected(capsys, "reduce/unrolled_warp:article", "--n", "512", view, code=1)
    both = inspected(capsys, "reduce/unrolled_warp:article", "reduce/shuffle", "--n", "512", code=1)
    assert len(re.findall(r"^reduce/.* of the CPU machine", both, re.M)) == 2


def test_every_class_of_instruction_has_its_place_in_the_mix():
    grouped = [name for classes in formats.MIX.values() for name in classes]
    assert sorted(grouped) == sorted(MIX)


def test_listings_keep_labels_predicates_and_instructions():
    sass = (
        "\t.section x\n.L_x_0:\n        /*0010*/              @!P0 IADD3 R0, R0, 0x1, RZ ;\n        /*0020*/ "
        "  NOP;\n.L_x_1:\n"
    )
    assert sass_lines(sass) == [".L_x_0:", "  @!P0 IADD3 R0, R0, 0x1, RZ"] and opcodes(sass_lines(sass)) == {
        "IADD3": 1
    }
    ptx = ".visible .entry f(\n\t.param .u64 a\n)\n{\n\t.reg .b32 %r<2>;\n\t.loc 1 2 3\n$L_1:\n"
    ptx += "\t@%p1 ld.shared.f32 %f1, [%r1]; // why\n\t{ cvt.rn.f16.f32 %h, %f;}\n}\n"
    assert ptx_lines(ptx, "f") == [
        "  .reg .b32 %r<2>;",
        "$L_1:",
        "  @%p1 ld.shared.f32 %f1, [%r1];",
        "  { cvt.rn.f16.f32 %h, %f;}",
    ]
    assert opcodes(ptx_lines(ptx, "f")) == {"ld.shared": 1, "cvt.rn": 1}
