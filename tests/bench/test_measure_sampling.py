"""When enough samples are taken, and what they say of a median."""

import itertools
import math
import statistics

import pytest

from tir_schedules.bench.sampling import (
    Policy,
    Trial,
    enough,
    half_width,
    median_interval,
    sample_in_turns,
    settle,
    spread,
)

POLICY = Policy(pause_s=0.0)


def chance_of_covering(n, low):
    """Of the interval from sample number `low` to its mirror image, by counting: each sample is above the
    median or below."""
    sides = itertools.product((0, 1), repeat=n)
    return sum(low < sum(side) < n - low for side in sides) / 2**n


@pytest.mark.parametrize("n", range(5, 14))
def test_the_interval_covers_the_median_as_often_as_promised_and_is_the_narrowest_that_does(n):
    low, high = median_interval(list(reversed(range(n))))
    assert low + high == n - 1
    assert chance_of_covering(n, low) >= 0.9375
    assert low + 1 > (n - 1) // 2 or chance_of_covering(n, low + 1) < 0.9375


def test_few_samples_give_their_whole_range():
    assert [median_interval(samples) for samples in ([3.0], [3.0, 1.0], [2.0, 9.0, 1.0])] == [
        (3.0, 3.0),
        (1.0, 3.0),
        (1.0, 9.0),
    ]


def test_half_width_is_a_share_of_the_median():
    assert half_width([99.0, 100.0, 100.0, 100.0, 103.0]) == pytest.approx(0.02)


def test_spread_is_the_distance_of_the_quartiles():
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 3) and spread([7.0]) == 0


def trial(samples, **facts):
    return Trial(None, None, samples=list(samples), **facts)


@pytest.mark.parametrize(
    "made, wanted",
    [
        (trial([1.0] * 4), False),
        (trial([1.0] * 5), True),
        (trial([1.0, 1.0, 1.0, 1.0, 1.02]), False),
        (trial([1.0, 1.0, 1.0, 1.0, 1.009]), True),
        (trial([1.0, 2.0] * 15), False),
        (trial([1.0, 2.0] * 16), True),
        (trial([1.0, 2.0], spent=9.0), False),
        (trial([1.0, 2.0, 3.0], spent=9.0), True),
        (trial([0.2] * 2, once=0.2), False),
        (trial([0.2, 0.3, 0.4], once=0.2), True),
        (trial([], failed=True), True),
    ],
)
def test_enough(made, wanted):
    assert enough(made, POLICY) is wanted


def taker(script, cost=0.0, log=None):
    """Takes the next number of each subject's script, the last one again and again."""
    taken = {}

    def take(trial):
        numbers = script[trial.subject]
        index = taken[trial.subject] = taken.get(trial.subject, -1) + 1
        trial.samples.append(numbers[min(index, len(numbers) - 1)])
        trial.spent += cost
        if log is not None:
            log.append(trial.subject)

    return take


def test_a_noisy_subject_goes_on_alone():
    log, noisy = [], [1.0 + 0.1 * math.sin(i) for i in range(40)]
    trials = [Trial("steady", None), Trial("noisy", None)]
    sample_in_turns(trials, POLICY, taker({"steady": [1.0], "noisy": noisy}, log=log))
    assert log[:10] == ["steady", "noisy"] * 5 and set(log[10:]) == {"noisy"}
    assert len(trials[0].samples) == 5 and len(trials[1].samples) == POLICY.max_samples


def test_settling_ends_when_two_rounds_agree_and_leaves_no_samples():
    trials = [Trial("a", None), Trial("b", None)]
    rounds = settle(trials, POLICY, taker({"a": [5.0, 3.0, 2.0, 2.0], "b": [4.0, 2.0, 1.0, 1.0]}, cost=0.01))
    assert rounds == 4 and all(trial.samples == [] and trial.spent == 0 for trial in trials)


def test_settling_that_never_settles_ends_with_its_time():
    rounds = settle([Trial("a", None)], POLICY, taker({"a": [2.0**i for i in range(99)]}, cost=0.5))
    assert rounds == math.ceil(POLICY.settle_s / 0.5)


def test_long_trials_are_not_run_to_settle():
    log = []
    assert settle([Trial("slow", None, once=1.0)], POLICY, taker({"slow": [1.0]}, log=log)) == 0 and log == []


def test_sustained_leaves_out_the_pauses():
    assert Policy().pause == 0.03 and Policy(sustained=True).pause == 0


def test_the_median_is_within_its_interval():
    samples = [1.0, 5.0, 2.0, 8.0, 3.0, 9.0, 4.0]
    low, high = median_interval(samples)
    assert low <= statistics.median(samples) <= high
