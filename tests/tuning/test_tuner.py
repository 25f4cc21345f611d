"""Searches driven by MetaSchedule, with a made-up cost in place of nvcc and of the machines; the slow test is
a real one."""

from __future__ import annotations

import random
import signal
import threading
from dataclasses import asdict, replace
from itertools import count

import pytest
from scipy.stats import spearmanr

pytest.importorskip("xgboost")

from tir_schedules.errors import BadInput, CheckFailed, MissingTool
from tir_schedules.ladders.registry import find
from tir_schedules.tuning.building.candidate import Unbuilt
from tir_schedules.tuning.measure.evaluator import Evaluation
from tir_schedules.tuning.records.database import Database
from tir_schedules.tuning.records.timesheet import Timesheet
from tir_schedules.tuning.search import tuner
from tir_schedules.tuning.search.tuner import BATCH, rank_correlation, tune
from tir_schedules.tuning.space.points import Constraint, Space, key
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.reduction import Reduction

GEMM = Gemm(64, 64, 64)
TILES = {"bm": (32, 64), "bk": (8, 16, 32), "stages": (3, 4, 5), "padding": (0, 4, 8), "rows_first": (0, 1)}
SPACE = Space(
    replace(find("sgemm/multistage:32x32")[0], configs={}),
    TILES,
    (Constraint("too deep", lambda config, *_: config.bk < 32 or config.stages < 5),),
)


def never(config):
    return False


class MadeUp:
    """Seconds from the point alone; `compare` says half of them. wrong: points whose kernel is found wrong.
    refused: points that the device refuses. broken: points that are found wrong only in the end."""

    kind, device, builders, places, place = "measured", "NVIDIA H200", 0, 1, "GPU"

    def __init__(self, wrong=never, refused=never, broken=never):
        self.spent = Timesheet()
        self.wrong, self.refused, self.broken = wrong, refused, broken
        self.finals = []

    def check(self, arch):
        if arch == "sm_87":
            raise BadInput("nothing is known of sm_87")

    def compare(self, rungs, workload, arch):
        self.finals.append(
            [SPACE.point_of(rung.config) for rung in rungs] if SPACE.rung.family == rungs[0].family else []
        )
        return [
            (
                CheckFailed("wrong\nafter all")
                if self.broken(rung.config)
                else (self.made_up(rung.config) / 2,) * 3
            )
            for rung in rungs
        ]

    def close(self):
        self.closed = True

    def evaluate(self, rung, workload, arch):
        config = rung.config
        if self.wrong(config):
            raise CheckFailed("found\nwrong")
        if self.refused(config):
            raise CheckFailed("does not run")
        return Evaluation((self.made_up(config),), "f" * 64)

    @staticmethod
    def made_up(config):
        return 1e-6 * (
            1 + abs(config.bk - 16) + abs(config.padding - 4) + config.stages + 20 * (config.bm == 64)
        )


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return Database(tmp_path_factory.mktemp("tuned") / "records.jsonl")


@pytest.fixture(scope="module")
def first(database):
    """A search of 12 trials, and what it told while it went on."""
    told = []
    wrong, refused = (
        (lambda config: config.rows_first and config.padding),
        (lambda config: not config.padding),
    )
    tuned = tune(
        SPACE, GEMM, "sm_90", 12, database, seed=1, on_trial=told.append, evaluator=MadeUp(wrong, refused)
    )
    return tuned, told


def test_the_budget_is_kept_and_no_point_tried_twice_or_outside_the_space(first, database):
    tuned, told = first
    assert len(told) == len(tuned.records) == 12
    assert len({key(record.point) for record in told}) == 12
    assert [record.trial for record in told] == list(range(12))
    assert not any(SPACE.refusal(record.point, GEMM, "sm_90") for record in told)
    assert database.records()[:12] == told


def test_the_hand_chosen_configuration_is_in_the_first_batch(first):
    assert SPACE.point_of(SPACE.rung.config) in [record.point for record in first[1][:BATCH]]


def test_what_is_found_wrong_or_refused_is_recorded_with_its_reason_and_has_no_time(first):
    for record in first[1]:
        wrong = record.point["rows_first"] and record.point["padding"]
        refused = not record.point["padding"]
        assert record.error == ("found wrong" if wrong else "does not run" if refused else "")
        assert bool(record.seconds) == (not record.error)
        assert bool(record.source) == (not record.error)
    assert {record.error for record in first[1]} == {"", "found wrong", "does not run"}


def test_the_best_is_the_fastest(first):
    tuned = first[0]
    assert tuned.best.median == min(record.median for record in tuned.records)
    assert len(tuned.best.seconds) == 3, "timed anew"


def test_a_record_loads_into_metaschedules_own_database(first):
    from tir_schedules.tir.tvm import import_tvm
    from tir_schedules.tuning.search.metaschedule import import_metaschedule, point_in

    best = first[0].best
    workload = import_metaschedule().database.Workload(
        import_tvm().IRModule({"main": GEMM.prim_func(SPACE.rung.entry)})
    )
    loaded = import_metaschedule().database.TuningRecord.from_json(best.metaschedule, workload)
    schedule = import_tvm().s_tir.Schedule(workload.mod)
    loaded.trace.apply_to_schedule(schedule, remove_postproc=False)
    assert point_in(schedule.mod) == best.point and [float(second) for second in loaded.run_secs] == list(
        best.seconds
    )


def test_a_rung_whose_algorithm_depends_on_its_point_is_searched(tmp_path):
    """Each candidate and each result is of its own algorithm, whose arguments tell the grid."""
    from tir_schedules.tuning.space.tunable import space_of

    class MadeUpSums(MadeUp):
        @staticmethod
        def made_up(config):
            return 1e-6 * (
                1 + abs(config.unroll - 4) + abs(config.block - 256) / 64 + config.most_blocks / 2**12
            )

    space, reduction = space_of("reduce/vectorized"), Reduction(1 << 24, "float32")
    tuned = tune(
        space, reduction, "sm_90", 32, Database(tmp_path / "sums.jsonl"), seed=1, evaluator=MadeUpSums()
    )
    assert len(tuned.records) == 32 and all(record.seconds for record in tuned.records)
    assert tuned.model_rank_correlation > 0.3
    for record in tuned.records:
        grid = space.rung.launch(reduction, space.config(record.point)).grid[0]
        assert record.metaschedule[3] == [["TENSOR", "float32", [1 << 24]], ["TENSOR", "float32", [grid]]]


def test_the_next_run_goes_on_and_its_model_knows_the_earlier_results(first, database):
    told = []
    tuned = tune(SPACE, GEMM, "sm_90", 24, database, seed=2, on_trial=told.append, evaluator=MadeUp())
    assert [record.trial for record in told] == list(range(12, 24))
    assert len({key(record.point) for record in tuned.records}) == 24
    assert tuned.model_rank_correlation is not None
    assert tuned.best.point["bm"] == 32 and tuned.best.median <= first[0].best.median
    assert tune(SPACE, GEMM, "sm_90", 24, database, evaluator=MadeUp(lambda config: 1 / 0)).best == tuned.best


def test_the_fastest_are_timed_side_by_side_in_the_end_until_the_fastest_was(tmp_path):
    database = Database(tmp_path / "finals.jsonl")
    evaluator = MadeUp(broken=lambda config: SPACE.point_of(config) == evaluator.finals[0][0])
    tuned = tune(SPACE, GEMM, "sm_90", 20, database, seed=1, evaluator=evaluator)
    own = SPACE.point_of(SPACE.rung.fitted(GEMM).config)
    assert (
        all(own in finals and len(finals) in (5, 6) for finals in evaluator.finals)
        and 1 <= len(evaluator.finals) <= 3
    )
    timed = {key(point) for finals in evaluator.finals for point in finals}
    assert key(tuned.best.point) in timed and len(tuned.best.seconds) == 3
    (wrong,) = [record for record in tuned.records if record.point == evaluator.finals[0][0]]
    assert wrong.error == "wrong after all" and not wrong.seconds and wrong.metaschedule is None
    assert len(tuned.records) == 20 and len(database.records()) == 20 + sum(map(len, evaluator.finals))


def test_a_search_begins_with_what_was_best_for_other_shapes(tmp_path, monkeypatch):
    from tir_schedules.tuning.search import trials

    database, evaluator = Database(tmp_path / "shapes.jsonl"), MadeUp()
    elsewhere = tune(SPACE, Gemm(64, 64, 128), "sm_90", 8, database, seed=3, evaluator=evaluator).best
    shipped = replace(
        elsewhere,
        point=elsewhere.point | {"padding": 4, "bk": 16, "stages": 3},
        workload=asdict(Gemm(64, 64, 256)),
        seconds=(1.0,),
    )
    monkeypatch.setattr(
        trials, "shipped_records", lambda device: [shipped] if device == evaluator.device else []
    )
    database.append(replace(elsewhere, point={"bm": 32}, workload=asdict(GEMM)))
    told = []
    tuned = tune(SPACE, GEMM, "sm_90", 8, database, seed=1, on_trial=told.append, evaluator=evaluator)
    assert len(tuned.records) == len(told) == 8, "a point of an earlier space is none"
    first = [record.point for record in told]
    assert elsewhere.point in first and shipped.point in first


def test_a_space_that_is_used_up_ends_the_search(tmp_path):
    few = replace(SPACE, fields={"stages": (3, 4), "padding": (0, 4)})
    assert (
        len(tune(few, GEMM, "sm_90", 100, Database(tmp_path / "few.jsonl"), evaluator=MadeUp()).records) == 4
    )


def test_other_devices_shapes_and_architectures_are_other_tasks(tmp_path):
    database, evaluator = Database(tmp_path / "all.jsonl"), MadeUp()
    tune(SPACE, GEMM, "sm_90", 1, database, evaluator=evaluator)
    tune(SPACE, Gemm(64, 64, 128), "sm_90", 1, database, evaluator=evaluator)
    tune(SPACE, GEMM, "sm_80", 1, database, evaluator=evaluator)
    assert len({(record.arch, record.problem) for record in database.records()}) == 3


class Interrupted(MadeUp):
    """Ctrl-C comes behind the third result. Those under way wait until the search has seen it."""

    def __init__(self):
        super().__init__()
        self.calls, self.seen, self.results = count(), threading.Event(), []

    def evaluate(self, rung, workload, arch):
        if next(self.calls) >= 3:
            # Another thread would take it without waking the main thread, which waits for this one.
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            assert self.seen.wait(60), "the search was not told"
        self.results.append(rung)
        return super().evaluate(rung, workload, arch)


def test_ctrl_c_is_raised_and_leaves_every_result_in_the_database(tmp_path, monkeypatch):
    database, evaluator = Database(tmp_path / "interrupted.jsonl"), Interrupted()
    monkeypatch.setattr(tuner, "print_error", lambda text: evaluator.seen.set())
    with pytest.raises(KeyboardInterrupt):
        tune(SPACE, GEMM, "sm_90", 20, database, evaluator=evaluator)
    assert len(database.records()) == len(evaluator.results)
    assert 4 <= len(evaluator.results) <= 3 + tuner.BUILT, "each thread finishes what it has under way"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_use_ends_the_search_and_is_no_trial(tmp_path):
    def missing(config):
        raise MissingTool("nvcc is gone")

    database = Database(tmp_path / "missing.jsonl")
    with pytest.raises(MissingTool, match="nvcc is gone"):
        tune(SPACE, GEMM, "sm_90", 20, database, evaluator=MadeUp(missing))
    assert database.records() == []


def test_candidates_that_this_computer_cannot_build_are_no_trials_and_are_tried_again(tmp_path, capsys):
    def unlucky(config):
        if config.stages == 3:
            raise Unbuilt("the process ended")

    database = Database(tmp_path / "unlucky.jsonl")
    tuned = tune(SPACE, GEMM, "sm_90", 12, database, evaluator=MadeUp(unlucky))
    told, passed_over = capsys.readouterr().err, 12 - len(tuned.records)
    assert (
        passed_over
        and f"{passed_over} candidates were not built and not recorded" in told
        and told.endswith("the process ended\n")
    )
    assert all(record.point["stages"] != 3 and not record.error for record in database.records())
    tuned = tune(SPACE, GEMM, "sm_90", 12, database, evaluator=MadeUp())
    assert len(tuned.records) == 12 and sorted(record.trial for record in tuned.records) == list(range(12))


def test_a_computer_that_can_build_nothing_ends_the_search_with_the_reason(tmp_path):
    def broken(config):
        raise Unbuilt("it cannot be built: ValueError: no\narchitecture")

    database = Database(tmp_path / "broken.jsonl")
    with pytest.raises(
        CheckFailed,
        match=r"^the first \d+ candidates cannot be built, so the search ends; the last: .* no architecture$",
    ):
        tune(SPACE, GEMM, "sm_90", 20, database, evaluator=MadeUp(broken))
    assert database.records() == []


@pytest.mark.parametrize(
    "trials, seed, arch, message",
    [
        (0, 0, "sm_90", "--trials is 0"),
        (1, -1, "sm_90", "--seed is -1"),
        (1, 0, "sm_75", "sm_80 or later"),
        (1, 0, "sm_87", "nothing is known of sm_87"),
    ],
)
def test_bad_input_is_refused_in_one_line(tmp_path, trials, seed, arch, message):
    with pytest.raises(BadInput, match=message):
        tune(SPACE, GEMM, arch, trials, Database(tmp_path / "none.jsonl"), seed=seed, evaluator=MadeUp())


def test_rank_correlation_is_of_what_has_both_score_and_time(first):
    timed = [record for record in first[1] if record.seconds][:4]
    fast = {key(record.point): -record.median for record in timed}
    assert rank_correlation(fast, first[1]) == pytest.approx(1)
    assert rank_correlation({name: -score for name, score in fast.items()}, first[1]) == pytest.approx(-1)
    assert rank_correlation(dict(list(fast.items())[:2]), first[1]) is None


def test_the_model_ranks_candidates_it_has_not_seen(tmp_path):
    from tir_schedules.tuning.search.features import cost_model
    from tir_schedules.tuning.search.metaschedule import candidate, import_metaschedule, tune_context
    from tir_schedules.tuning.search.trials import Trials

    tried = Trials(SPACE, GEMM, "sm_90", Database(tmp_path / "none.jsonl"), MadeUp(), 1, print)
    points = [SPACE.sample(rng, GEMM, "sm_90") for rng in map(random.Random, range(96))]
    context, model = tune_context(SPACE, GEMM, "sm_90", None, 0), cost_model(tried)
    candidates = [candidate(SPACE, point, GEMM) for point in points]
    costs = [MadeUp.made_up(SPACE.config(point)) for point in points]
    result = import_metaschedule().runner.RunnerResult
    model.update(context, candidates[:48], [result([cost], None) for cost in costs[:48]])
    scores = model.predict(context, candidates[48:])
    assert spearmanr(scores, [-cost for cost in costs[48:]]).statistic > 0.5


@pytest.mark.slow
def test_a_real_search_without_a_gpu(tmp_path):
    from tir_schedules.tuning.space.tunable import space_of

    tuned = tune(
        space_of("sgemm/multistage"), Gemm(256, 256, 256), "sm_90", 12, Database(tmp_path / "real.jsonl")
    )
    assert len(tuned.records) == 12 and tuned.best.kind == "predicted" and tuned.best.device == "CPU machine"
    assert tuned.best.median < 20e-6
