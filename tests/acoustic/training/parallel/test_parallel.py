"""Training by several jobs: it is the average of what each learns, and what dies on the way changes nothing else."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from safetensors.numpy import save

from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model
from acoustic.training.evaluation import sum_figures
from acoustic.training.learner import Diverged, Learner
from acoustic.training.parallel import ParallelOptions, executors
from acoustic.training.parallel.files import Iteration, IterationFiles
from acoustic.training.reporting.log import read_history
from acoustic.training.rules import AdaGrad, AdamW, FsAdaGrad, Momentum, NaturalGradient, RmsProp
from acoustic.training.sgd import train
from readers.common.environment import using_cores
from readers.errors import FormatError, ModelError
from readers.tables.tensor_file import METADATA_KEY, load_tensors
from tests.acoustic.training.parallel.sources import Faulty, opened, small_network, small_options, write_task
from tests.acoustic.training.parallel.trainings import COUNT, Here, rows_of, run, same
from tests.acoustic.training.ring import Killed

CRITERION = "CrossEntropyWithSoftmax"


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.setattr(executors, "LocalProcesses", Here)


@pytest.fixture
def examples(tmp_path):
    write_task(tmp_path / "e", COUNT)
    return tmp_path / "e"


@pytest.mark.parametrize(
    "rule", [Momentum(), AdamW(), RmsProp(), AdaGrad(), FsAdaGrad()], ids=lambda rule: rule.names[0]
)
def test_one_job_is_plain_training(examples, rule):
    """Its parameters, and what the rule keeps, come back unchanged from an average of one."""
    options = small_options(rule=rule, learning_rates_per_minibatch=0.02)
    plain = run(examples, None, options)
    by_job = run(examples, ParallelOptions(1, samples=100), options, name="j")
    assert same(by_job, plain)
    assert [row["taken"] for row in rows_of(examples, "j")] == ["average"] * 8
    histories = [read_history(examples.with_name(f"{name}.history.jsonl")) for name in "mj"]
    for one, other in zip(*histories, strict=True):
        assert one["samples"] == other["samples"]
        assert one["training"] == pytest.approx(other["training"], rel=1e-12)


@pytest.mark.parametrize("rule", [Momentum(), AdamW(), NaturalGradient(rank_in=2, rank_out=2)])
def test_an_outer_iteration_is_the_average_of_what_each_job_learns(examples, rule):
    """Against three Learners one after the other, here, each on its third of the data at three times the rate."""
    options = small_options(1, rule=rule, dropout_rate=0.2, learning_rates_per_minibatch=0.02)
    found = run(
        examples,
        ParallelOptions(3, samples=200, best_first=False),
        options,
        network=small_network(dropout=True),
    )
    share = -(-COUNT // 3)
    sums: dict[str, np.ndarray] = {}
    for job in range(3):
        network = small_network(dropout=True)
        names = [*network.criteria, *network.evaluations]
        with opened(examples) as reader, using_cores(1):
            learner = Learner(network, reader, replace(options, epoch_size=share), names)
            values = options.epoch(0)
            learner.run(job, replace(values, learning_rate=3 * values.learning_rate))
        for node in network.stored():
            sums[node.name] = sums.get(node.name, 0.0) + node.value.astype(np.float64)
    assert same(found, {name: (total / 3).astype(np.float32) for name, total in sums.items()})
    (row,) = rows_of(examples)
    assert (row["iteration"], row["epoch"], row["taken"]) == (1, 1, "average")
    assert [job["samples"] for job in row["jobs"]] == [share] * 3
    assert row["learning_rate_per_sample"] == options.epoch(0).learning_rate
    mean = np.mean([job["training"][CRITERION] for job in row["jobs"]])
    assert row["training"][CRITERION] == pytest.approx(mean)
    assert {"seconds", "averaging_seconds"} < row.keys()


def test_the_learning_rate_falls_from_iteration_to_iteration(examples):
    """Exponentially, as it does within a plain epoch: one job of four iterations with as many steps in each."""
    options = small_options(2, learning_rates_per_minibatch=1.0, final_learning_rate=0.01)
    run(examples, ParallelOptions(2, samples=50), options)
    rates = [row["learning_rate_per_sample"] for row in rows_of(examples)]
    np.testing.assert_allclose(rates, 1 / 25 * 0.01 ** (np.arange(8) / 8))
    options = small_options(1, learning_rates_per_minibatch=1.0, final_learning_rate=0.01, minibatch_size=25)
    plain = run(examples, None, options, name="plain")
    jobs = run(examples, ParallelOptions(1, samples=100), options, name="jobs")
    assert jobs.keys() == plain.keys()
    for name, tensor in plain.items():
        np.testing.assert_allclose(jobs[name], tensor, rtol=1e-5, atol=1e-6)


def test_what_the_rule_keeps_is_averaged_too(examples):
    run(examples, ParallelOptions(2, samples=100, best_first=False), small_options(1, rule=AdamW()))
    files = IterationFiles(examples.with_name("m.parallel"), 20)
    found = files.load(2)
    assert found.scalars == {"updates": 8}  # of four minibatches in each of two iterations
    assert all(np.any(tensor) for tensor in found.tensors.values())
    run(examples, ParallelOptions(2, samples=100), small_options(1, rule=NaturalGradient()), name="n")
    assert IterationFiles(examples.with_name("n.parallel"), 20).load(2).tensors == {}


def test_after_the_first_iteration_the_best_job_is_taken(examples):
    lines: list[str] = []
    run(examples, ParallelOptions(2, samples=50), small_options(1), lines=lines)
    rows = rows_of(examples)
    means = [job["training"][CRITERION] for job in rows[0]["jobs"]]
    assert [row["taken"] for row in rows] == [1 + int(np.argmin(means)), "average", "average", "average"]
    assert any(line.startswith(f"Outer iteration 1: uses the model of job {rows[0]['taken']} with") for line in lines)


def test_jobs_learn(tmp_path):
    write_task(tmp_path / "e", 4000)
    write_task(tmp_path / "v", 500, seed=1)
    options = small_options(4, momentum_per_minibatch=0.0, learning_rates_per_minibatch=1.0)
    run(tmp_path / "e", ParallelOptions(2, samples=500), options, validation=opened(tmp_path / "v"))
    history = read_history(tmp_path / "m.history.jsonl")
    assert [row["samples"] for row in history] == [4000] * 4
    assert history[-1]["validation"]["EvalErrorPrediction"] < 0.1
    assert (tmp_path / "m.1").exists()
    network = load_model(tmp_path / "m")
    names = [*network.criteria, *network.evaluations]
    with opened(tmp_path / "v") as reader:
        totals = sum_figures(Engine(network, names), reader.minibatches(0, 100), names)
    assert totals.averages() == pytest.approx(history[-1]["validation"], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "iteration"),
    [
        *((Momentum(), iteration) for iteration in (1, 4, 5, 8)),
        (AdamW(), 3),
        (NaturalGradient(rank_in=2, rank_out=2), 3),
    ],
)
def test_a_run_killed_anywhere_goes_on_from_the_last_averaged_model(examples, monkeypatch, rule, iteration):
    """Before or after an iteration's model is there, at the end of an epoch too."""
    parallel, options = ParallelOptions(2, samples=50, processes=1), small_options(rule=rule)
    whole = run(examples, parallel, options, name="whole")
    save = IterationFiles.save
    for when in ("before", "after"):

        def dying(self, network, state, when=when):
            if state.number == iteration and when == "before":
                raise Killed
            save(self, network, state)
            if state.number == iteration:
                raise Killed

        monkeypatch.setattr(IterationFiles, "save", dying)
        with pytest.raises(Killed):
            run(examples, parallel, options, name=when)
        monkeypatch.setattr(IterationFiles, "save", save)
        lines: list[str] = []
        resumed = run(examples, parallel, options, name=when, lines=lines)
        assert same(resumed, whole)
        rows = rows_of(examples, when)
        assert [row["iteration"] for row in rows] == list(range(1, 9))
        done = (iteration if when == "after" else iteration - 1) - 4 * (iteration > (4 if when == "after" else 5))
        assert [row["training"] for row in rows] == [row["training"] for row in rows_of(examples, "whole")]
        histories = [read_history(examples.with_name(f"{name}.history.jsonl")) for name in (when, "whole")]
        assert [row["training"] for row in histories[0]] == [row["training"] for row in histories[1]]
        if 0 < done < 4:
            assert any(
                f"model.{iteration - (when == 'before')}, {done} of 4 outer iterations" in line for line in lines
            )


def die_in_the_first_epoch(examples, monkeypatch):
    """Two jobs, until the third outer iteration is saved."""
    save = IterationFiles.save

    def dying(self, network, state):
        save(self, network, state)
        if state.number == 3:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(IterationFiles, "save", dying)
        with pytest.raises(Killed):
            run(examples, ParallelOptions(2, samples=50))


def test_another_plan_begins_the_epoch_anew(examples, monkeypatch):
    """Other shares of the data: what was done of the epoch no longer fits."""
    die_in_the_first_epoch(examples, monkeypatch)
    lines: list[str] = []
    found = run(examples, ParallelOptions(1, samples=100), lines=lines)
    assert any("model.3 was made with" in line and '"jobs": 2' in line and '"jobs": 1' in line for line in lines)
    assert same(found, run(examples, ParallelOptions(1, samples=100), name="fresh"))


def test_other_figures_begin_the_epoch_anew(examples, monkeypatch):
    """Those of the iterations that are done would be missing."""
    die_in_the_first_epoch(examples, monkeypatch)
    lines: list[str] = []
    options = small_options(eval_criterion="CrossEntropyWithSoftmax")
    run(examples, ParallelOptions(2, samples=50), options, lines=lines)
    assert any("model.3 was made with" in line and '"figures": ' in line for line in lines)


def test_make_mode_false_takes_up_nothing(examples, monkeypatch):
    run(examples, ParallelOptions(2, samples=50), small_options(1))
    before = sorted(path.name for path in examples.with_name("m.parallel").iterdir())
    run(examples, ParallelOptions(2, samples=100), small_options(1, make_mode=False))
    after = sorted(path.name for path in examples.with_name("m.parallel").iterdir())
    assert before == ["history.jsonl", *(f"model.{k}" for k in range(4)), "model.4", "model.4.ckp"]
    assert after == ["history.jsonl", "model.0", "model.1", "model.2", "model.2.ckp"]


def test_only_the_last_models_stay(examples):
    run(examples, ParallelOptions(2, samples=50, keep=3))
    files = IterationFiles(examples.with_name("m.parallel"), 3)
    assert files.models() == [files.model(number) for number in (6, 7, 8)]
    final = load_tensors(examples.with_name("m"))[0]
    assert same(load_tensors(files.model(8))[0], final)


def test_as_many_models_stay_as_an_epoch_has(examples, monkeypatch):
    """For combination, which averages over parts of the last epoch where it has more than so many; else as many."""
    assert [ParallelOptions(2).kept(iterations) for iterations in (1, 20, 21, 100)] == [20, 20, 21, 100]
    assert ParallelOptions(2, keep=3).kept(100) == 3
    monkeypatch.setattr("acoustic.training.parallel.options.KEPT", 2)
    run(examples, ParallelOptions(2, samples=50))
    files = IterationFiles(examples.with_name("m.parallel"), 1)
    assert files.models() == [files.model(number) for number in (5, 6, 7, 8)]  # of the second of two epochs


def test_the_fault_of_a_job_is_told_with_its_place(examples):
    with pytest.raises(FormatError, match=r"^outer iteration 2, job 2: a bad disk$"):
        run(examples, ParallelOptions(2, samples=100), source=partial(Faulty, examples, 333))
    lines: list[str] = []
    with pytest.raises(OSError, match="a bad disk"):
        run(examples, ParallelOptions(2, samples=100, retries=1),
            small_options(make_mode=False), lines=lines,
            source=partial(Faulty, examples, 0, OSError))  # fmt: skip
    assert len([line for line in lines if "job 1: lost (" in line or "job 2: lost (" in line]) == 1
    with pytest.raises(RuntimeError, match=r"outer iteration 1, job 1: Traceback(.|\n)*ZeroDivisionError: a bad disk"):
        faulty = partial(Faulty, examples, 0, ZeroDivisionError)
        run(examples, ParallelOptions(1), small_options(make_mode=False), source=faulty)


def test_jobs_need_a_source(examples):
    with opened(examples) as reader, pytest.raises(ModelError, match="ParallelOptions without source; expected a func"):
        train(small_network(), reader, small_options(), parallel=ParallelOptions(2, samples=100))


def test_divergence_in_a_job_is_told_with_its_place(examples):
    options = small_options(learning_rates_per_minibatch=3e38)
    with pytest.raises(
        Diverged, match=r"^outer iteration 1, job [12], (minibatch \d+: \w+ is|last minibatch: parameter)"
    ):
        run(examples, ParallelOptions(2, samples=100), options)


def test_too_many_jobs_for_the_data(examples):
    with pytest.raises(ModelError, match=r"parallelTrain: 20 frames for each of 20 jobs.*at least minibatchSize 25"):
        run(examples, ParallelOptions(20))


@pytest.mark.parametrize("frames", [1, 10, 999, 1000, 1001, 123456])
@pytest.mark.parametrize(("jobs", "samples"), [(1, 1000), (4, 100), (3, 1), (16, 400_000)])
def test_every_frame_of_an_epoch_is_in_a_share(frames, jobs, samples):
    iterations, share = ParallelOptions(jobs, samples=samples).plan(frames)
    assert iterations >= 1
    assert frames <= iterations * jobs * share < frames + iterations * jobs
    if iterations > 1:
        assert 2 / 3 * samples <= share <= 4 / 3 * samples + 1


def test_a_damaged_checkpoint_is_named(examples, monkeypatch):
    run(examples, ParallelOptions(2, samples=50), small_options(1))
    files = IterationFiles(examples.with_name("m.parallel"), 20)
    files.checkpoint(4).write_bytes(files.checkpoint(4).read_bytes()[:100])
    examples.with_name("m").unlink()
    with pytest.raises(ModelError, match=r"m\.parallel/model\.4\.ckp: .*complete safetensors file"):
        run(examples, ParallelOptions(2, samples=50), small_options(1))
    files.checkpoint(4).write_bytes(files.model(4).read_bytes())
    with pytest.raises(ModelError, match=r"model\.4\.ckp: 'argonaut-network' version 1; expected 'argonaut-outer-iter"):
        run(examples, ParallelOptions(2, samples=50), small_options(1))


@pytest.mark.gpu
def test_jobs_learn_on_a_gpu_what_they_learn_on_the_cpu(examples):
    pytest.importorskip("cupy")
    there = run(examples, ParallelOptions(2, samples=100), network=small_network(device="gpu"), name="gpu")
    here = run(examples, ParallelOptions(2, samples=100), name="cpu")
    for name, tensor in here.items():
        np.testing.assert_allclose(there[name], tensor, rtol=1e-3, atol=1e-4)


def test_history_is_plain_json(examples):
    run(examples, ParallelOptions(2, samples=100), small_options(1))
    lines = (examples.with_name("m.parallel") / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1, 2]


@pytest.mark.parametrize(
    "changes", [{"num_frames": 1e999}, {"figures": {"CE": 10**400}}, {"scalars": 3}, {"plan": [1]}]
)
def test_damaged_checkpoints_of_iterations_are_refused(tmp_path, changes):
    files = IterationFiles(tmp_path, 1)
    files.save(small_network(), Iteration(1, {"epoch": 1}, {"CE": 1.5}, 90, {}, {"updates": 3}))
    _, state = load_tensors(files.checkpoint(1))
    path = files.checkpoint(1)
    path.write_bytes(save({"x": np.zeros(1)}, {METADATA_KEY: json.dumps(state | changes)}))
    with pytest.raises(ModelError, match=r"model\.1\.ckp: damaged \(.*expected plan, figures, num_frames and scalars"):
        files.load(1)
