"""What becomes of kernels whose verdict depends on how they are judged."""

import json
from importlib import resources
from pathlib import Path

import pytest

FILE = Path(__file__).parent / "kernels" / "judged.cu"


@pytest.fixture
def told(tool):
    """What --json has of the file's kernels, a list of results for each."""

    def call(*options):
        found: dict[str, list] = {}
        for one in json.loads(tool("check", str(FILE), "--json", *options)[1]):
            found.setdefault(one["kernel"], []).append(one)
        return found

    return call


def test_verdicts(told):
    found = told()
    verdicts = {name: [one["verdict"] for one in results] for name, results in found.items()}
    assert verdicts == {
        "sums_of_blocks": ["pass"], "tile_in_tf32": ["pass", "pass"], "copy_by_four": ["pass"],
        "halved": ["no expected value"],
        "two_outputs": ["pass"],
        "sum_of_halves": ["loose"], "no_nan": ["fail"], "drops_the_last": ["fail"],
    }  # fmt: skip
    (nan,), (dropped,) = found["no_nan"][0]["wrong"], found["drops_the_last"][0]["wrong"]
    assert "should be nan" in nan and "--finite leaves such inputs out" in nan
    assert "judged.cu:" in dropped

    (told_of_z,) = found["two_outputs"][0]["unshown"]
    assert told_of_z == "nothing says what z should be: say --expect z=..."

    (copied,) = found["copy_by_four"]
    line = FILE.read_text().split("\n").index("      y[i] = x[i] + 1; // @unexecuted") + 1
    assert line in [place["line"] for place in copied["unexecuted"]] and not copied["unshown"]


def test_the_part_of_each_block_is_right(told):
    (result,) = told("--kernel", "sums_of_blocks", "-D", "SWAPPED")["sums_of_blocks"]
    assert result["verdict"] == "fail" and "2 of 4 elements wrong with few inputs" in result["wrong"][0]


def test_products_of_parts_may_leave_out_the_smallest(tool):
    """At K = 1 these are more than what float32 rounds."""
    file = resources.files("cuda_reference") / "sgemm" / "bf16x6_fused.cu"
    options = "--as sgemm --mnk 128,128,1 --grid 2,2 --block 32,4 --shared 56832 --arch sm_90a"
    assert tool("check", str(file), *options.split())[0] == 0


def test_special_numbers_can_be_left_out(told):
    (result,) = told("--kernel", "no_nan", "--finite")["no_nan"]
    assert result["verdict"] == "pass"


def test_nothing_is_verified_without_an_expected_value(tool):
    code, out, _ = tool("check", str(FILE), "--kernel", "halved")
    assert code == 0 and "no expected value given: 0 hazards on the CPU machine" in out
    assert "no hazard" in out and "verified" not in out


def test_a_kernel_of_which_nvcc_leaves_nothing_is_told(tool, tmp_path):
    """Its stores beyond the end of `s` are not found, because there are none."""
    file = tmp_path / "mine.cu"
    file.write_text(
        "__global__ void idle() { __shared__ int s[8]; s[threadIdx.x] = 1; __syncthreads(); }\n"
        '__global__ void says() { asm volatile("trap;"); }\n'
    )
    told = "note: idle as compiled reads and writes no memory: nvcc leaves out what has no effect"
    assert (
        "as compiled" not in tool("check", str(FILE), "--kernel", "tile_in_tf32")[1]
    )  # it has wmma.load alone
    assert told in tool("check", str(file), "--kernel", "idle", "--block", "32")[1]
    assert "compiled" not in tool("check", str(file), "--kernel", "says", "--block", "32")[1]


def test_what_rounding_hides_is_not_verified(tool):
    code, out, _ = tool("check", str(FILE), "--kernel", "sum_of_halves")
    text = " ".join(out.split())
    assert code == 0 and "0 of 1 verified, 1 within a loose tolerance" in text
    assert "without it an expected value changes by" in text


def test_a_size_that_reaches_a_line_is_named(tool):
    code, out, _ = tool("check", str(FILE), "--kernel", "copy_by_four")
    assert code == 0 and "no lane executes" in out and "--let n=1023 reaches" in " ".join(out.split())


RANKS = """\
__global__ void by_rank(const float *x, float *y, int n) {
  int i = threadIdx.x, rank = 0;
  if (i >= n) return;
  for (int j = 0; j < n; ++j) rank += x[j] < x[i] || (x[j] == x[i] && j < i);
  y[rank] = x[i];
}
"""


def test_a_finding_of_special_numbers_says_so(tool, tmp_path):
    """NaN is below no number, so that two elements have rank 0."""
    path = tmp_path / "ranks.cu"
    path.write_text(RANKS)
    given = "--block 32 --let n=9 --arg x=f32[n] --arg y=f32[n]:out --expect y=sort(x)".split()
    code, out, _ = tool("check", str(path), *given)
    (line,) = [line for line in out.split("\n") if line.startswith("overlapping_writes")]
    assert code == 1 and "is nan; --finite leaves such inpu" in line
    assert tool("check", str(path), *given, "--finite")[0] == 0


def test_a_constant_of_cudas_is_not_blamed_on_a_missing_header(tool, tmp_path):
    path = tmp_path / "most.cu"
    path.write_text("#include <torch/nothing.h>\n__global__ void k(float *y) { y[0] = -CUDART_INF_F; }\n")
    code, out, _ = tool("check", str(path), "--block", "1", "--arg", "y=f32[1]")
    assert code == 1 and "CUDART_INF_F is one of CUDA's math_constants.h: include that" in out
