"""Automatic control of learning rate and minibatch size: sequences worked out by hand on prescribed criteria."""

import json
import math

import pytest

from acoustic.training.control import AdaptiveMinibatch, AdjustAfterEpoch, AutoAdjust, Control, SearchBeforeEpoch
from acoustic.training.control.options import AFTER, BEFORE
from acoustic.training.control.search import trial_frames
from acoustic.training.options import TrainingOptions
from readers.errors import ModelError

NAN, INF = math.nan, math.inf


def no_trial(rate):
    raise AssertionError("this control makes no trials")


def options_of(rates=(0.8, 0.4), auto=None, **changes) -> TrainingOptions:
    return TrainingOptions(99, learning_rates_per_sample=rates, auto_adjust=auto or AutoAdjust(AFTER), **changes)


def epochs_run(control, criteria, interval=1) -> list[tuple]:
    """(epoch, learning rate, rolled back) of each epoch that is run, its criterion being the next of `criteria`."""
    rows, epoch, best = [], 0, 0
    for criterion in criteria:
        if control.finished:
            break
        rate = control.before_epoch(epoch, no_trial, print)
        decision = control.after_epoch(epoch, criterion)
        rows.append((epoch, pytest.approx(rate), decision.roll_back))
        epoch = best if decision.roll_back else epoch + 1
        best = epoch if epoch % interval == 0 else best
    return rows


def test_no_control_follows_the_schedule():
    control = Control(options_of((0.8, 0.4), AutoAdjust()))
    assert [control.before_epoch(epoch, no_trial, print) for epoch in range(4)] == [0.8, 0.4, 0.4, 0.4]
    assert not control.after_epoch(3, NAN).roll_back
    assert not control.stops(0.0)
    assert not control.survives(3)


def test_nothing_happens_while_rates_are_listed():
    control = AdjustAfterEpoch(options_of((0.8, 0.4, 0.2)))
    assert epochs_run(control, [1.0, 2.0, 3.0]) == [(0, 0.8, False), (1, 0.4, False), (2, 0.2, False)]
    assert control.previous == 3.0


def test_worse_goes_back_and_reduces():
    control = AdjustAfterEpoch(options_of())
    # Epoch 2 is worse than epoch 1 (0.9): epoch 2 again with 0.4 * 0.618; worse again: once more; then better.
    assert epochs_run(control, [1.0, 0.9, 0.95, 0.91, 0.8, 0.7]) == [
        (0, 0.8, False),
        (1, 0.4, False),
        (2, 0.4, True),
        (2, 0.4 * 0.618, True),
        (2, 0.4 * 0.618**2, False),
        (3, 0.4 * 0.618**2, False),
    ]


def test_worse_without_going_back_reduces_and_compares_with_the_worse():
    control = AdjustAfterEpoch(options_of(auto=AutoAdjust(AFTER, load_best=False, decrease=0.5)))
    assert epochs_run(control, [1.0, 0.9, 0.95, 0.93, 0.93, 0.1]) == [
        (0, 0.8, False),
        (1, 0.4, False),
        (2, 0.4, False),  # worse: reduced
        (3, 0.2, False),  # better than 0.95
        (4, 0.2, False),  # no better: an improvement of 0 is not more than 0
        (5, 0.1, False),
    ]


def test_small_improvements_reduce_and_large_ones_increase():
    auto = AutoAdjust(AFTER, reduce_below=0.1, increase_above=0.5, increase=2.0, decrease=0.5)
    control = AdjustAfterEpoch(options_of((1.0,), auto))
    # 0.95 of 1: 5 %, reduced; 0.4 of 0.95: 58 %, increased; 0.3 of 0.4: 25 %, neither; 0.27: exactly 10 %, reduced
    assert epochs_run(control, [1.0, 0.95, 0.4, 0.3, 0.26, 0.2]) == [
        (0, 1.0, False),
        (1, 1.0, False),
        (2, 0.5, False),
        (3, 1.0, False),
        (4, 1.0, False),
        (5, 1.0, False),
    ]
    control = AdjustAfterEpoch(options_of((1.0,), auto))
    assert epochs_run(control, [1.0, 0.95, 0.9, 0.9])[-1] == (3, 0.25, False)


def test_continue_reduce_goes_on_and_ends_at_the_second_failure():
    auto = AutoAdjust(AFTER, reduce_below=0.1, continue_reduce=True, decrease=0.5)
    control = AdjustAfterEpoch(options_of((1.0,), auto))
    criteria = [1.0, 0.5, 0.48, 0.3, 0.2, 0.19, 0.01]
    assert epochs_run(control, criteria) == [
        (0, 1.0, False),
        (1, 1.0, False),
        (2, 1.0, False),  # 4 %: from now on reduced after every epoch
        (3, 0.5, False),
        (4, 0.25, False),
        (5, 0.125, False),  # 5 %: the second time ends training
    ]
    assert control.finished


def test_intervals_compare_means_and_go_back_to_their_ends():
    control = AdjustAfterEpoch(options_of((1.0,), AutoAdjust(AFTER, interval=2, decrease=0.5)))
    # Means: (1 + 0.8)/2 = 0.9; (0.7 + 0.9)/2 = 0.8, better; (0.6 + 1.2)/2 = 0.9, worse: back to the end of epoch 3
    assert epochs_run(control, [1.0, 0.8, 0.7, 0.9, 0.6, 1.2, 0.6, 0.5], interval=2) == [
        (0, 1.0, False),
        (1, 1.0, False),
        (2, 1.0, False),
        (3, 1.0, False),
        (4, 1.0, False),
        (5, 1.0, True),
        (4, 0.5, False),
        (5, 0.5, False),
    ]
    assert control.previous == pytest.approx(0.55)


def test_epochs_that_are_repeated_take_the_reduced_rate_also_where_one_is_listed():
    control = AdjustAfterEpoch(options_of((1.0, 0.8, 0.6, 0.4), AutoAdjust(AFTER, interval=3, decrease=0.5)))
    rows = epochs_run(control, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 0.5, 0.5, 0.5], interval=3)
    again = [(3, 0.2, False), (4, 0.2, False), (5, 0.2, False)]
    assert rows[3:] == [(3, 0.4, False), (4, 0.4, False), (5, 0.4, True), *again]


def test_no_number_counts_as_worse_where_there_is_a_model_to_return_to():
    control = AdjustAfterEpoch(options_of((1.0,), AutoAdjust(AFTER, decrease=0.5)))
    assert not control.survives(0)
    assert control.survives(1)
    assert epochs_run(control, [1.0, NAN, 0.9]) == [(0, 1.0, False), (1, 1.0, True), (1, 0.5, False)]
    assert not AdjustAfterEpoch(options_of((1.0,), AutoAdjust(AFTER, load_best=False))).survives(1)
    assert not AdjustAfterEpoch(options_of((1.0,), AutoAdjust(AFTER, interval=2))).survives(2)


def test_rates_below_the_smallest_stop():
    control = AdjustAfterEpoch(options_of((1.0,), min_learning_rate=0.1))
    assert control.stops(0.09)
    assert not control.stops(0.1)


@pytest.mark.parametrize("done", range(1, 7))
def test_adjustment_is_resumed_from_its_state(done):
    auto = AutoAdjust(AFTER, interval=2, reduce_below=0.1, continue_reduce=True)
    criteria = [1.0, 0.8, 0.8, 0.7, 0.3, 0.4, 0.2, 0.2, 0.1]
    whole, first, second = (AdjustAfterEpoch(options_of((1.0,), auto)) for _ in range(3))
    for epoch, criterion in enumerate(criteria[:done]):
        whole.after_epoch(epoch, criterion)
        first.after_epoch(epoch, criterion)
    second.restore(json.loads(json.dumps(first.state(), allow_nan=False)))
    for epoch, criterion in enumerate(criteria[done:], done):
        expected = whole.before_epoch(epoch, no_trial, print)
        assert second.before_epoch(epoch, no_trial, print) == expected
        assert second.after_epoch(epoch, criterion) == whole.after_epoch(epoch, criterion)
    assert second.state() == whole.state()


# ---- search


class Trials:
    """Trials of a prescribed criterion; notes the rates."""

    def __init__(self, criterion):
        self.criterion, self.asked = criterion, []

    def __call__(self, value):
        self.asked.append(value)
        return self.criterion(value)


def search_options(rates=(), **changes) -> TrainingOptions:
    auto = AutoAdjust(BEFORE, **({"best_epochs": 0, "trial_minibatches": 10} | changes.pop("auto", {})))
    return options_of(rates, auto, minibatch_size=16, **changes)


def test_search_falls_until_a_trial_is_as_good_as_the_base():
    control = SearchBeforeEpoch(search_options())
    # Without learning 2.0; an epoch before there is none, so the base is 2.0.
    trials = Trials(lambda rate: 2.0 if rate == 0 else 1.9 if rate < 0.013 else 2.5)
    lines = []
    rate = control.before_epoch(0, trials, lines.append)
    start = 1 / 8 / math.sqrt(16)  # 0.03125
    assert trials.asked == pytest.approx([0, start, start * 0.618, start * 0.618**2])
    assert rate == pytest.approx(start * 0.618**2)
    assert lines == [f"Best Learn Rate Per Sample for Epoch[1] = {rate:.10g}  baseCriterion=2"]


def test_search_begins_above_the_largest_of_the_last_rates():
    control = SearchBeforeEpoch(search_options((0.5, 0.1, 0.2), auto={"previous_rates": 2}))
    for epoch in range(3):
        control.before_epoch(epoch, no_trial, print)
    trials = Trials(lambda rate: 1.0)
    assert control.before_epoch(3, trials, print) == pytest.approx(0.2 / 0.618)
    assert trials.asked == pytest.approx([0, 0.2 / 0.618])
    assert control.rates == pytest.approx([0.2, 0.2 / 0.618])


@pytest.mark.parametrize(
    ("epoch_size", "unchanged", "expected"),
    [
        (0, 1.0, 0.3 * 2.0 + 0.7 * 1.0),  # r = 0.3
        (640, 1.0, 0.5 * 2.0 + 0.5 * 1.0),  # trial 160 of 640 frames: r = 1/2
        (0, 3.0, 3.0),  # the previous epoch's was better than this model's: at least the model's
    ],
)
def test_base_of_the_search(epoch_size, unchanged, expected):
    options = search_options((0.1,), epoch_size=epoch_size)
    control = SearchBeforeEpoch(options)
    control.before_epoch(0, no_trial, print)
    control.after_epoch(0, 2.0)
    assert trial_frames(options, 1) == 160
    # Trials that are a little worse than the base fail, one that equals it does.
    values = iter([unchanged, expected + 1e-6, expected])
    trials = Trials(lambda rate: next(values))
    control.before_epoch(1, trials, print)
    assert len(trials.asked) == 3


def test_trials_are_no_longer_than_an_epoch():
    assert trial_frames(search_options((0.1,), epoch_size=100), 0) == 100
    options = search_options((0.1,), auto={"trial_minibatches": (3, 5)})
    assert [trial_frames(options, epoch) for epoch in range(3)] == [48, 80, 80]


def test_golden_section_for_the_best_rate():
    control = SearchBeforeEpoch(search_options(auto={"best_epochs": 1}))
    # Best at 0.005: the criterion is the distance from it in the logarithm.
    trials = Trials(lambda rate: 9.0 if rate == 0 else abs(math.log(rate / 0.005)))
    rate = control.before_epoch(0, trials, print)
    start, left = 0.03125, 0.01 / 16  # the first trial is sufficient at once
    # distances: right 1.83, left 2.08; the left is worse and moves
    expected = [0, start, left]
    right_value, left_value = math.log(start / 0.005), math.log(0.005 / left)
    right = start
    while right > 1.2 * left:
        if right_value > left_value:
            right *= 0.618
            right_value = abs(math.log(right / 0.005))
            expected.append(right)
        else:
            left /= 0.618
            left_value = abs(math.log(left / 0.005))
            expected.append(left)
    assert trials.asked == pytest.approx(expected)
    assert rate in (pytest.approx(left), pytest.approx(right))
    assert abs(math.log(rate / 0.005)) == pytest.approx(min(left_value, right_value))
    # The next epoch is content with a sufficient one.
    trials.asked.clear()
    control.before_epoch(1, trials, print)
    assert len(trials.asked) == 2


def test_search_survives_trials_that_diverge_and_refuses_data_that_never_work():
    trials = Trials(lambda rate: 1.0 if rate < 0.01 else NAN)
    assert SearchBeforeEpoch(search_options()).before_epoch(0, trials, print) < 0.01
    with pytest.raises(ModelError, match=r"epoch 1: no learning rate down to .* gives a finite criterion"):
        SearchBeforeEpoch(search_options()).before_epoch(0, lambda rate: NAN if rate else 1.0, print)
    with pytest.raises(ModelError, match="epoch 1: the criterion of a trial without learning is nan"):
        SearchBeforeEpoch(search_options()).before_epoch(0, lambda rate: NAN, print)


def test_search_ends_at_a_third_of_the_smallest_rate():
    options = search_options(min_learning_rate=1e-3)
    trials = Trials(lambda rate: 1.0 if rate == 0 else 5.0)
    rate = SearchBeforeEpoch(options).before_epoch(0, trials, print)
    assert rate <= 3e-4 < rate / 0.618
    assert SearchBeforeEpoch(options).stops(rate)


def test_search_is_resumed_from_its_state():
    first, second = (SearchBeforeEpoch(search_options((0.3, 0.2))) for _ in range(2))
    for epoch in range(2):
        first.before_epoch(epoch, no_trial, print)
        first.after_epoch(epoch, 2.0 - epoch)
    second.restore(json.loads(json.dumps(first.state(), allow_nan=False)))
    assert (second.previous, second.rates) == (1.0, [0.3, 0.2])


# ---- minibatch size


def size_options(sizes=(256,), **auto) -> TrainingOptions:
    changes = {key: auto.pop(key) for key in ("epoch_size",) if key in auto}
    return options_of((0.1,), AutoAdjust(adapt_minibatch=True, **auto), minibatch_size=sizes, **changes)


def test_minibatches_grow_by_the_root_of_two_while_the_criterion_allows():
    sizes = AdaptiveMinibatch(size_options())
    assert sizes.before_epoch(0, 0.1, no_trial, print) == 256
    # 256, 362 -> 384, 512, 724 -> 704, ...: one percent over the base of 1.0 is still good
    trials = Trials(lambda size: 1.0 if size < 700 else 1.0101)
    lines = []
    assert sizes.before_epoch(1, 0.1, trials, lines.append) == 512
    assert trials.asked == [256, 384, 512, 704]
    assert lines == ["Minibatch size adapted to 512 for epoch 2."]


def test_growth_between_epochs_is_at_most_twofold_and_falls_at_most_to_half():
    sizes = AdaptiveMinibatch(size_options())
    trials = Trials(lambda size: 1.0)
    sizes.before_epoch(0, 0.1, no_trial, print)
    sizes.before_epoch(1, 0.1, Trials(lambda size: 1.0 if size <= 512 else 2.0), print)
    assert sizes.before_epoch(2, 0.1, trials, print) == 1024
    assert trials.asked == [256, 384, 512, 704, 1024]
    trials.asked.clear()
    assert sizes.before_epoch(3, 0.1, trials, print) == 2048
    assert trials.asked == [512, 704, 1024, 1472, 2048]
    assert sizes.before_epoch(4, 0.1, Trials(lambda size: float(size)), print) == 1024


def test_a_learning_rate_that_fell_raises_the_smallest_size():
    sizes = AdaptiveMinibatch(size_options())
    sizes.before_epoch(0, 0.4, no_trial, print)
    trials = Trials(lambda size: float(size))
    assert sizes.before_epoch(2, 0.1, trials, print) == 512  # 256 / sqrt(1/4)
    trials = Trials(lambda size: float(size))
    assert sizes.before_epoch(1, 0.8, trials, print) == 256  # it rose: the listed size


@pytest.mark.parametrize(
    ("settings", "largest"), [({"tuning_max": 400}, 384), ({"epoch_size": 300}, 256), ({"tuning_max": 100}, 100)]
)
def test_sizes_stay_below_their_maximum(settings, largest):
    sizes = AdaptiveMinibatch(size_options(**settings))
    sizes.before_epoch(0, 0.1, no_trial, print)
    assert sizes.before_epoch(1, 0.1, lambda size: 1.0, print) == largest


def test_no_minibatch_is_larger_than_the_data():
    sizes = AdaptiveMinibatch(size_options(), 2276)
    sizes.before_epoch(0, 0.1, no_trial, print)
    assert sizes.before_epoch(1, 0.1, lambda size: 1.0, print) == 2048


def test_sizes_are_searched_every_few_epochs_and_not_while_they_are_listed():
    sizes = AdaptiveMinibatch(size_options((64, 128), tuning_frequency=3))
    asked = []

    def trial(size):
        asked.append(size)
        return 1.0 if size <= 256 else 2.0

    chosen = [sizes.before_epoch(epoch, 0.1, trial, print) for epoch in range(7)]
    assert chosen[:2] == [64, 128]
    assert chosen[2:] == [256, 256, 256, 256, 256]  # searched before the third and the sixth
    assert asked.count(128) == 2


def test_a_trial_that_diverges_is_not_taken():
    sizes = AdaptiveMinibatch(size_options((64,)))
    sizes.before_epoch(0, 0.1, no_trial, print)
    assert sizes.before_epoch(1, 0.1, Trials(lambda size: 1.0 if size <= 64 else NAN), print) == 64
    again = AdaptiveMinibatch(size_options((64,)))
    again.restore(json.loads(json.dumps(sizes.state())))
    assert (again.previous, again.first_rate) == (64, 0.1)
