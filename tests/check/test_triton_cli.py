"""`check FILE.py`: options, comments, exit codes."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from tir_schedules.check.triton.library import the_triton
from tir_schedules.cli.main import main
from tir_schedules.source import EXAMPLES

FOLDER = Path(__file__).parent
KERNELS = "examples/triton_kernels.py"
ADD = "--kernel add --let n=1000 --arg f32[n] --arg f32[n] --arg f32[n]:out --expect out=x+y"
MATMUL = (
    "--kernel matmul --let m=64,n=33,k=40 --arg a=f16[m,k] --arg b=f16[k,n] --arg c=f32[m,n]:out"
    " --expect 'c=a @ b' --grid cdiv(m,BM),cdiv(n,BN) --constexpr BM=32 --constexpr BN=32 --constexpr BK=32"
)
SOFTMAX = (
    "--kernel softmax --grid 3 --arg f32[3,37] --arg f32[3,37]:out --arg 37 --arg 37 --constexpr BLOCK=64"
)


@pytest.fixture
def check(tmp_path_factory, monkeypatch, capsys):
    """Runs `check` in the folder of the kernels: exit code, what it prints, what it complains of."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "triton"))
    monkeypatch.chdir(FOLDER)

    def run(file, options):
        code = main(["check", *([str(file)] if file else []), *shlex.split(options)])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def needs_triton():
    pytest.importorskip("triton")


@pytest.mark.usefixtures("needs_triton")
class TestWithTriton:
    def test_a_kernel_with_names_and_sizes(self, check):
        code, out, _ = check(KERNELS, f"{MATMUL} --num-warps 2 --num-stages 1")
        assert code == 0 and "2,2,1" in out and "64,1,1" in out and "1 of 1 verified" in out

    def test_what_lanes_store_together_is_not_told(self, check):
        code, out, _ = check(KERNELS, SOFTMAX)
        assert code == 0 and "note" not in out

    def test_what_autotune_sets_is_known_to_the_grid(self, check):
        options = "--kernel scale --let n=999 --arg f32[n] --arg f32[n]:out --arg 1.5 --expect out=1.5*x"
        code, out, _ = check(KERNELS, f"{options} --grid cdiv(n,BLOCK)")
        assert code == 0 and "scale (configuration 1 of 2)" in out and "8,1,1" in out
        code, out, _ = check(KERNELS, f"{options} --grid cdiv(n,BLOCK) --constexpr BLOCK=512")
        assert code == 0 and "configuration" not in out and "2,1,1" in out

    def test_other_views_name_lines_of_python(self, check, capsys):
        options = [*shlex.split(f"{MATMUL} --num-stages 1")]
        assert main(["inspect", KERNELS, *options, "--lines"]) == 0
        line = next(line for line in capsys.readouterr().out.splitlines() if "left = tile(a" in line)
        text = (EXAMPLES / "triton_kernels.py").read_text()
        number = str(text[: text.index("left = tile(a")].count("\n") + 1)
        assert f" {number} " in line
        assert main(["layout", KERNELS, number, *options, "--json"]) == 0
        patterns = json.loads(capsys.readouterr().out)["patterns"]
        assert {one["variable"] for one in patterns} == {"global_smem"}
        assert {one["kind"] for one in patterns} >= {"shared_store"}

    def test_a_fault_is_named_by_its_line(self, check):
        options = ADD.replace("add", "add_without_mask") + " --grid cdiv(n,BLOCK) --constexpr BLOCK=256"
        code, out, _ = check("triton_broken.py", options)
        source = (FOLDER / "triton_broken.py").read_text().split("\n")
        line = next(at for at, text in enumerate(source, 1) if "beyond the end of x" in text)
        assert code == 1 and f"out_of_bounds: triton_broken.py:{line} reads 8 bytes of x[1000]" in out

    def test_an_element_left_out_of_a_long_sum(self, check):
        options = "--kernel total_without_last --let n=20000 --grid cdiv(n,BLOCK) --constexpr BLOCK=256"
        given = " --arg x=f32[n] --arg out=f32[1]:zeros:inout --expect out=sum(x)"
        code, out, _ = check("triton_broken.py", options + given)
        assert code == 1 and "within 0.25" in out

    def test_comments_of_the_file(self, check, tmp_path):
        text = (EXAMPLES / "triton_kernels.py").read_text()
        own = f"# check: {ADD}\n# check: --grid cdiv(n,BLOCK) --constexpr BLOCK=128\n"
        (tmp_path / "mine.py").write_text(text + own)
        code, out, _ = check(tmp_path / "mine.py", "")
        assert code == 0 and "1 of 1 verified" in out

    def test_what_the_machine_does_not_know_is_missing(self, check):
        code, _, told = check(KERNELS, f"{MATMUL} --arch sm_100".replace("BM=32", "BM=64"))
        assert code == 3 and "tcgen05" in told and told.rstrip().endswith("--arch sm_80")

    @pytest.mark.parametrize(
        "options, told",
        [
            ("", "triton_kernels.py has several kernels; name one: add, softmax"),
            ("--kernel adds", "has no kernel 'adds', did you mean 'add'?"),
            ("--kernel add", "x, y, out, n, BLOCK are not given"),
            ("--kernel add --arg z=3", "add takes (x, y, out, n, BLOCK: constexpr), and no z"),
            ("--launch add[1,2]", "leave out --block, --shared, --launch and --then"),
            ("--kernel add --block 128", "leave out --block, --shared, --launch and --then"),
            ("--kernel add --constexpr BLOCK=many", "--constexpr BLOCK= 'many': it takes a number"),
            ("--kernel add --constexpr BLOCK=tl.float99", "triton.language does not have it"),
            ("--kernel add --constexpr BLOCK", "--constexpr takes NAME=VALUE such as BM=64"),
            (f"{ADD} --arg 1 --arg 2", "--arg 1: add has no parameter left for it"),
            (f"{SOFTMAX} --as sgemm --mnk 8,8,8", "a Triton kernel is checked by --kernel"),
            (f"{SOFTMAX} --expect z=3", "there is no array 'z'"),
            (f"{SOFTMAX} --num-warps 3", "num_warps is 3"),
        ],
    )
    def test_bad_input(self, check, options, told):
        code, out, complaint = check(KERNELS, options)
        assert (code, out) == (2, "") and told in complaint and complaint.count("\n") == 1


def test_its_options_are_for_python_files(check, tmp_path):
    (tmp_path / "mine.cu").write_text("__global__ void one() {}")
    code, _, told = check(tmp_path / "mine.cu", "--block 1 --num-warps 4")
    assert code == 2 and "are for Triton kernels, of a FILE.py" in told


def test_without_triton(check, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "triton", None)
    the_triton.cache_clear()
    code, _, told = check(KERNELS, ADD)
    assert code == 3 and "Triton is not installed: pip install 'tir_schedules[triton]'" in told
