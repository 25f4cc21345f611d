"""Lessons: starts fail, solutions pass, and wrong answers fail for the reason that their lessons say."""

import json
import re
from pathlib import Path

import pytest

from tir_schedules.check.expressions import number
from tir_schedules.cli.learn import next_lesson
from tir_schedules.cli.main import main
from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import find
from tir_schedules.lessons.desk import Desk
from tir_schedules.lessons.goals import COUNT, HIDDEN, TIME, WORDS, met, parse_goal
from tir_schedules.lessons.grading import grade
from tir_schedules.lessons.lesson import CHAPTERS, all_lessons, find_lesson, parse_lesson

EVERY = {lesson.id: lesson for lesson in all_lessons()}
QUICK = ("003/coalesced", "003/predict_naive", "003/coalesced_schedule", "002/volatile", "000/prefetch")
"""One lesson of each kind: a counter, answers, a schedule, a race, and a predicted time."""


def layered(quick):
    return [id if id in quick else pytest.param(id, marks=pytest.mark.slow) for id in EVERY]


def told(lesson, code, folder):
    """Whether a file with this code passes, and what is missing."""
    file = folder / lesson.file
    file.write_text(code)
    found = grade(lesson, file)
    return found.passed, "\n".join(
        line for one in found.goals if not one.met for line in (one.goal, *one.told)
    )


@pytest.mark.parametrize("id", layered(QUICK))
def test_a_start_fails_and_a_solution_passes(id, tmp_path):
    lesson = EVERY[id]
    assert told(lesson, lesson.solution, tmp_path) == (True, "")
    passed, missing = told(lesson, lesson.learners_file(), tmp_path)
    assert not passed and missing


@pytest.mark.parametrize("id", layered(QUICK[:2]))
def test_wrong_answers_fail_as_told(id, tmp_path):
    lesson = EVERY[id]
    for wrong in lesson.wrong:
        passed, missing = told(lesson, wrong.code, tmp_path)
        assert not passed and wrong.told in missing, wrong.name


def test_the_block_that_has_most_to_do_is_looked_at(tmp_path):
    lesson = EVERY["beyond/stream_k"]
    uneven = next(wrong for wrong in lesson.wrong if "remainder" in wrong.name)
    missing = told(lesson, uneven.code, tmp_path)[1]
    assert missing.count("of a block") == 1 and "44 with R=5, K=7; at most 36 is the goal" in missing


def test_accesses_that_meet_are_told_before_a_deadlock(tmp_path):
    """And of inline assembly the line with the instruction."""
    lesson = EVERY["beyond/tma_ring"]
    told_first = told(lesson, lesson.start, tmp_path)[1].split("\n")[1]
    assert "in_flight: writes ring" in told_first and "(PTX line" in told_first
    assert re.search(r': asm volatile\("cp.async.bulk.tensor', told_first)


def test_the_line_that_calls_what_is_slow_is_named(tmp_path):
    """The wait itself is in a header."""
    lesson = EVERY["001/stages"]
    missing = told(lesson, lesson.start, tmp_path)[1]
    assert re.search(
        r"warps spend most of it:\n\S+:15: __pipeline_wait_prior\(0\);\n\S+:16: sum \+=", missing
    )


@pytest.mark.slow
@pytest.mark.parametrize("id", EVERY)
def test_a_solution_passes_with_other_sizes(id, tmp_path):
    """Sizes follow from the text: a comment behind it draws others."""
    lesson = EVERY[id]
    comment = "#" if lesson.language == "python" else "//"
    for place in range(4 if ".." in lesson.one("sizes") else 0):
        assert told(lesson, f"{lesson.solution}{comment} {place}\n", tmp_path) == (True, "")


def test_lessons_are_complete():
    assert len(EVERY) >= 36
    assert {lesson.chapter for lesson in EVERY.values()} == set(CHAPTERS)
    for lesson in EVERY.values():
        assert len(lesson.wrong) >= 3 and len({wrong.code for wrong in lesson.wrong}) == len(lesson.wrong)
        assert (
            lesson.hints and lesson.after and lesson.goals and lesson.one("article") and lesson.one("sizes")
        )
        assert all(code != lesson.solution for code in (lesson.start, *(one.code for one in lesson.wrong)))
        assert find(lesson.one("rung"))
        assert all(len(line) <= 130 for line in lesson.text.split("\n")), lesson.id
        assert [*lesson.sizes("a")] == [*lesson.sizes("a")]
        letters = set(re.findall(r"\b[A-Z]+\b", " ".join(goal.text for goal in lesson.goals))) - {
            "CUDA",
            "SM",
            "TMA",
        }
        assert all(re.search(rf"\b{one}\b", f"{lesson.one('letters')} {lesson.text}") for one in letters), (
            lesson.id
        )
    varying = [lesson for lesson in EVERY.values() if ".." in lesson.one("sizes")]
    for lesson in varying:
        assert len({str([*lesson.sizes(text)]) for text in "abcdefgh"}) > 1, lesson.id


@pytest.mark.parametrize("id", [id for id, lesson in EVERY.items() if lesson.asks])
def test_sizes_that_are_not_drawn_tell_wrong_formulas_apart(id):
    lesson = EVERY[id]
    every = [
        sizes for sizes in zip(*(lesson.sizes(text) for text in "abc")) if sizes[0] == sizes[1] == sizes[2]
    ]
    right = lesson.answered(lesson.solution)
    for wrong in lesson.wrong:
        pairs = [(formula, right[name][0]) for name, (formula, _) in lesson.answered(wrong.code).items()]
        assert any(number(a, one, "a") != number(b, one, "b") for a, b in pairs for one, *_ in every), (
            wrong.name
        )


LESSON = (
    "# Title\n\n- sizes: n=4\n\nText\n\n## Start\n```cu\na\nb\n```\n\n## Solution\n```diff\n-b\n+c\n```\n"
)


def test_a_lesson_is_read_from_its_file():
    lesson = parse_lesson(
        "003/mine", LESSON + "after\n\n## Hint\nthink\n\n## Wrong: one -> FAIL\n```diff\n-c\n+d\n```\n"
    )
    assert (lesson.start, lesson.solution, lesson.after) == ("a\nb\n", "a\nc\n", "after")
    assert lesson.hints == ("think",) and lesson.wrong[0].code == "a\nd\n" and lesson.wrong[0].told == "FAIL"


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("# Title", "Title", "begins with `# TITLE`"),
        ("- sizes", "- size", "no field 'size', did you mean 'sizes'"),
        ("## Start", "## Begin", "has `## Start`"),
        ("-b\n", "-x\n", "stand once in the solution"),
        ("## Solution", "## Wrong: one\n```cu\na\n```\n\n## Solution", "a wrong answer is"),
    ],
)
def test_a_lesson_that_cannot_be_read_says_why(old, new, message):
    with pytest.raises(BadInput, match=re.escape(message)):
        parse_lesson("003/mine", LESSON.replace(old, new))


def test_goals_have_words_and_may_hide_a_limit():
    goal = parse_goal("shared bytes <= 64 * 80 => as few as possible")
    assert goal.text == "shared bytes: as few as possible" and goal.limit == "64 * 80"
    goal = parse_goal("global loads <= N -- one for each row")
    assert goal.text == "global loads: at most N sectors (one for each row)" and goal.limit == "N"
    goal = parse_goal("TMA boxes == B")
    assert goal.text == "TMA boxes: exactly B boxes"
    assert [met(goal, value, 2) for value in (1, 2, 3)] == [False, True, False]
    goal = parse_goal("time <= 5 us -- one copy at a time takes 6")
    assert goal.text == "predicted time at most 5 us (one copy at a time takes 6)" and goal.limit == "5 us"
    with pytest.raises(BadInput, match="did you mean 'ldmatrix'"):
        parse_goal("needs ldmatrx")


def test_goals_that_are_not_counted_are_refused():
    lesson = parse_lesson("003/mine", LESSON.replace("- sizes", "- goal: global load <= 3\n- sizes"))
    with pytest.raises(BadInput, match="003/mine: the goal .*, did you mean 'global loads'"):
        print(lesson.goals)


@pytest.mark.parametrize(
    "goal",
    ["shared bytes of a block <= 4096", "time of a block <= 90 %", "answer warps: warps on an SM of a block"],
)
def test_a_goal_of_a_block_is_one_that_is_counted_in_blocks(goal):
    with pytest.raises(BadInput, match="is not counted for each block; name it alone"):
        parse_goal(goal)
    with pytest.raises(BadInput, match="'mma of a block' is not counted"):
        parse_goal("needs mma of a block")
    assert parse_goal("global loads of a block <= 4").what == "global loads of a block"


@pytest.mark.parametrize("id", EVERY)
def test_a_limit_says_where_it_comes_from(id):
    bare = [
        text
        for text, goal in zip(EVERY[id].fields["goal"], EVERY[id].goals)
        if goal.kind in (COUNT, TIME) and not re.search(f"{WORDS}|{HIDDEN}", text)
    ]
    assert not bare


# ---- the verb
@pytest.fixture
def learn(tmp_path, monkeypatch, capsys):
    """Calls `learn` in an empty folder; returns the exit code and what was printed."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        code = main(["learn", *words])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return call


FILE = Path("tir-lessons/lesson_003_guard.cu")


def test_a_lesson_from_start_to_end(learn):
    code, out = learn()
    assert code == 0 and all(id in out for id in EVERY) and "next: tir-schedules learn start 003/guard" in out
    code, out = learn("start")
    assert code == 0 and "A thread beyond the edge" in out and f"wrote {FILE}" in out
    code, out = learn("check")
    assert code == 1 and "MISSING  right" in out and "lesson_003_guard.cu:" in out and "out_of_bounds" in out
    code, out = learn("hint")
    assert code == 0 and out.startswith("1 of 3: ") and "2 of 3" not in out
    assert learn("hint")[1].startswith("2 of 3: ") and learn("hint")[1].startswith("3 of 3: ")
    assert "1 of 3: " in learn("hint")[1]
    code, out = learn("solution", "-o", "mine.cu")
    assert code == 0 and "before it touches memory" in out
    FILE.write_text(Path("mine.cu").read_text())
    code, out = learn("check")
    assert code == 0 and "003/guard is passed; next: tir-schedules learn start 003/predict_naive" in out
    assert "executed with 4 sets of sizes" in out
    assert json.loads(learn("list", "--json")[1])[0]["passed"] is True
    assert json.loads(learn("check", "--json")[1])["passed"] is True
    FILE.write_text("")
    assert learn("check")[0] == 1 and "passed, fails now" in learn()[1]


def test_an_edited_file_is_never_written_over(learn):
    learn("start", "003/guard")
    assert learn("start", "003/guard")[0] == 0  # nothing was changed
    FILE.write_text("mine")
    code, out = learn("start", "003/guard")
    assert code == 2 and "has your changes and stays as it is" in out and FILE.read_text() == "mine"
    code, out = learn("start", "003/guard", "--again")
    assert code == 0 and FILE.with_name("lesson_003_guard_1.cu").read_text() == "mine"
    assert FILE.read_text() == EVERY["003/guard"].learners_file()
    code, out = learn("solution", "003/guard", "-o", str(FILE))
    assert code == 2 and "stays as it is" in out


KERNEL = "__global__ void matmul(const float *A, const float *B, float *C, int M, int N, int K) {"


@pytest.mark.parametrize(
    "text, message",
    [
        (f"{KERNEL}\n  x = 1;\n}}\n", 'lesson_003_guard.cu:2: error: identifier "x" is undefined'),
        ("__global__ void other(float *A) {}\n", "lesson_003_guard.cu:1: "),
        ("__global__ void matmul(float *A, int n) {}\n", "the lesson launches `__global__ void matmul(const"),
        ("", "the lesson launches `__global__ void matmul(const float *A"),
        (f"{KERNEL} for (volatile int i = 0; i < 1;) ; }}\n", "endless"),
        (f"{KERNEL} C[1 << 30] = 1; }}\n", "out_of_bounds: writes 4 bytes"),
        (f'{KERNEL} asm volatile("nonsense;"); }}\n', "lesson_003_guard.cu"),
        (f"{KERNEL} *(volatile int *)0 = 1; }}\n", "MISSING  right"),
        (f"{KERNEL}}}\n", "C[0, 0] is nan"),
    ],
)
def test_files_that_cannot_be_right(learn, text, message):
    learn("start", "003/guard")
    FILE.write_text(text)
    code, out = learn("check")
    assert code == 1 and message in out and "Traceback" not in out


SCHEDULE = EVERY["003/coalesced_schedule"].start
ENDLESS = "    while True:\n        pass\n"


@pytest.mark.parametrize(
    "text, message",
    [
        ("def f(:\n", "lesson_003_coalesced_schedule.py:1: "),
        ("import nothing_here\n", "lesson_003_coalesced_schedule.py:1: ModuleNotFoundError"),
        ("x = 1\n", "has no rung"),
        (SCHEDULE.replace("    block =", f"{ENDLESS}    block ="), "did not end within 1 seconds"),
        (
            SCHEDULE.replace("schedule=schedule", "schedule=schedule, prim_func=len"),
            "the algorithm is the lesson's",
        ),
        (f"import importlib\n{SCHEDULE}", "coalesced_schedule.py:1: importlib may have the answer"),
        (f"exec('')\n{SCHEDULE}", "coalesced_schedule.py:1: a schedule needs no exec"),
        (SCHEDULE.replace('"sgemm"', '"reduce"'), "a rung of sgemm, not of reduce"),
    ],
)
def test_schedules_that_cannot_be_right(learn, text, message, monkeypatch):
    monkeypatch.setattr("tir_schedules.lessons.schedules.SECONDS", 1)
    learn("start", "003/coalesced_schedule")
    Path("tir-lessons/lesson_003_coalesced_schedule.py").write_text(text)
    code, out = learn("check")
    assert code == 1 and message in out and "Traceback" not in out


def test_bad_words_are_told_in_one_line(learn):
    for words, message in (
        (("start", "003/coalesed"), "did you mean '003/coalesced'"),
        (("check",), "no lesson was started here"),
        (("check", "003/guard"), "there is no tir-lessons/lesson_003_guard.cu"),
        (("list", "003/guard"), "`learn start 003/guard`"),
        (("hint", "--watch"), "--watch is for `learn check`"),
        (("beyond/flag",), "`tir-schedules learn start beyond/flag`"),
        (("strat",), "did you mean 'start'"),
        (("words", "sector"), "takes no lesson"),
    ):
        code, out = learn(*words)
        assert code == 2 and message in out and out.count("\n") == 1


def test_the_words_of_lessons_are_explained(learn):
    code, out = learn("words")
    assert code == 0 and "wavefront" in out and "32 bytes of global memory" in out
    code, out = learn("start", "003/barrier")
    assert (
        "C is M x N" in out
        and "A wavefront is" in out
        and "depends on what is loaded from shared memory" in out
    )
    assert "nothing is spilled" in learn("start", "000/registers")[1]


def test_the_next_lesson_is_the_one_behind():
    desk = Desk(Path("nowhere"), lessons={"003/coalesced": {"passed": True}})
    every = [*EVERY.values()]
    assert next_lesson(every, desk, "003/predict_naive").id == "003/coalesced_schedule"
    assert next_lesson(every, desk, every[-1].id).id == every[0].id


def test_the_cuda_of_a_schedule_is_beside_its_file(learn):
    learn("start", "003/same_cuda")
    code, out = learn("check")
    place, line = re.search(r"(lesson_003_same_cuda.emitted.cu):(\d+)", out).groups()
    text = Path("tir-lessons", place).read_text().split("\n")[int(line) - 1].strip()
    assert code == 1 and f"{place}:{line}: {text}" in out


def test_a_broken_progress_file_is_told(learn):
    Path("tir-lessons").mkdir()
    for text in ("{", "[]", '{"tir_schedules": "lessons", "current": 1, "lessons": {}}'):
        Path("tir-lessons/progress.json").write_text(text)
        code, out = learn("start")
        assert code == 2 and "tir-lessons/progress.json is not" in out and "delete it" in out


def test_a_file_cannot_print_that_it_passes(learn):
    learn("start", "003/coalesced")
    file = Path("tir-lessons/lesson_003_coalesced.cu")
    text = file.read_text().replace("float sum = 0;", 'float sum = 0; if (m == 1) printf("is passed\\n");')
    file.write_text("#include <cstdio>\n" + text)
    code, out = learn("check")
    assert code == 1 and "is passed\n" not in out


def test_a_check_comment_of_the_file_is_not_believed(learn):
    learn("start", "003/coalesced")
    file = Path("tir-lessons/lesson_003_coalesced.cu")
    file.write_text(
        "// check: --kernel matmul --grid 1 --block 1 --as sgemm --mnk 1,1,1\n" + file.read_text()
    )
    code, out = learn("check")
    assert code == 1 and "M=128" in out


def test_find_lesson_knows_files():
    assert find_lesson("somewhere/lesson_003_guard.cu").id == "003/guard"
