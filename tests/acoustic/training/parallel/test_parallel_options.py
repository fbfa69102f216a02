"""The block parallelTrain: what it asks for, when it is off, and its faults by file and line."""

import pytest

from acoustic.training.configuration import training_options
from acoustic.training.parallel import ParallelOptions, parallel_notes, parallel_options
from readers.config.config import Config
from readers.errors import ConfigError


def read(block: str, around: str = "", new: bool = True) -> ParallelOptions | None:
    text = f"{around}\ntrain=[\nSGD=[\nmaxEpochs=1\nlearningRatesPerMB=1\n{block}\n]\n]"
    sgd = Config.from_text(text, "p.cntk").block("train").block("SGD")
    training_options(sgd)  # the names of SGD are known
    return parallel_options(sgd, new)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("parallelTrain=[numJobs=4]", ParallelOptions(4)),
        (
            "parallelTrain=[numJobs=2;samplesPerIteration=1000;threadsPerJob=3;maxProcesses=1;jobRetries=0;"
            "keepIterations=5;bestOfFirstIteration=false;scheduler=tcp://a:1]",
            ParallelOptions(2, 1000, 3, 1, 0, 5, False, "tcp://a:1"),
        ),
        (
            "parallelTrain=[parallelizationMethod=modelAveragingSGD;distributedMBReading=true;numJobs=2\n"
            "ModelAveragingSGD=[syncFrequencyInFrames=40000]]",
            ParallelOptions(2, 40000),
        ),
        ("parallelTrain=[numJobs=2;syncFrequencyInFrames=7]", ParallelOptions(2, 7)),
        ("parallelTrain=[numJobs=2;ModelAveragingSGD=[blockSizePerWorker=9;MAPerfStats=1]]", ParallelOptions(2, 9)),
        ("parallelTrain=[numJobs=2;ModelAveragingSGD=[blockSize=9]]", ParallelOptions(2, 4)),
        ("parallelTrain=[numJobs=2;samplesPerIteration=5000000000]", ParallelOptions(2, 5_000_000_000)),
        ("parallelTrain=[numJobs=2;syncFrequencyInFrames=5000000000]", ParallelOptions(2, 5_000_000_000)),
        ("parallelTrain=[numJobs=2;ModelAveragingSGD=[blockSize=5000000000]]", ParallelOptions(2, 2_500_000_000)),
        ("parallelTrain=[numJobs=2;parallelizationStartEpoch=3]", ParallelOptions(2, start_epoch=3)),
        (
            "parallelTrain=[numJobs=2;parallelizationMethod=dataParallelSGD\n"
            "DataParallelSGD=[gradientBits=32;useZeroThresholdFor1BitQuantization=true]]",
            ParallelOptions(2, averages=False),
        ),
        ("parallelTrain=[numJobs=2;parallelizationMethod=none]", None),
        ("", None),
        ("parallelTrain=false", None),
        ("parallelTrain=true", None),
        (
            "parallelTrain=[parallelizationMethod=DataParallelSGD]",
            None,
        ),  # the tool's, by way of MPI: one process trains
    ],
)
def test_what_is_asked_for(block, expected):
    assert read(block) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [("false", None), ("0", None), ("F", None), ("", None), ("T", 2), ("1", 2)]
)
def test_the_switch_takes_all_forms_of_truth_values(value, expected):
    found = read("parallelTrain=[numJobs=2]", f"parallelTrain={value}")
    assert (found and found.num_jobs) == expected
    bad = "parallelTrain=maybe"
    for text in (("parallelTrain=[numJobs=2]", bad), (bad,), ("", bad)):
        with pytest.raises(ConfigError, match=r"parallelTrain is 'maybe'; expected true or false"):
            read(*text)


def test_what_stands_around_it():
    assert read("parallelTrain=[numJobs=2]", "scheduler=tcp://b:2").scheduler == "tcp://b:2"
    assert read("parallelTrain=[numJobs=2]", "parallelTrain=false") is None
    assert read("parallelTrain=[numJobs=2]", "parallelTrain=true").num_jobs == 2
    assert read("", "parallelTrain=[numJobs=2]").num_jobs == 2
    assert not read("parallelTrain=[numJobs=2]", new=False).best_first
    assert read("parallelTrain=[numJobs=2;bestOfFirstIteration=true]", new=False).best_first


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("numJobs=0", r"p\.cntk:6: train\.SGD\.parallelTrain\.numJobs is 0; expected at least 1 job"),
        ("numJobs=2;samplesPerIteration=0", "samplesPerIteration is 0; expected at least 1 frame"),
        ("numJobs=2;keepIterations=-1", "keepIterations is -1; expected at least 0"),
        ("numJobs=x", "numJobs is 'x'; expected"),
        ("numJobs=2;threads=3", r"parallelTrain\.threads is not known here"),
        ("numJobs=2;parallelizationMethod=x", "is 'x'; expected ModelAveragingSGD"),
        ("numJobs=2;parallelizationMethod=DataParallelSDG", "is 'DataParallelSDG'; .* did you mean DataParallelSGD"),
        (
            "numJobs=2;parallelizationMethod=DataParallelASGD",
            "is DataParallelASGD, which is not built: asynchronous updates are not reproducible; expected DataPar",
        ),
        (
            "numJobs=2;parallelizationMethod=BlockMomentumSGD",
            "BlockMomentumSGD, which is not built: it averages models",
        ),
        ("numJobs=2;ModelAveragingSGD=[x=1]", r"ModelAveragingSGD\.x is not known here"),
        (
            "numJobs=2;ModelAveragingSGD=[blockSize=5;syncPeriod=4]",
            "blockSize is given beside syncPeriod; expected one",
        ),
        ("numJobs=2;parallelizationStartEpoch=0", "parallelizationStartEpoch is 0; expected at least 1"),
        (
            "numJobs=2;parallelizationMethod=DataParallelSGD;DataParallelSGD=[gradientBits=1]",
            "p.cntk:6: gradientBits is 1, and quantised gradients are not built; expected 32, the size of a number, or",
        ),
        (
            "numJobs=2;parallelizationMethod=DataParallelSGD\n"
            "DataParallelSGD=[useBufferedAsyncGradientAggregation=true]",
            r"p.cntk:7: .*\.useBufferedAsyncGradientAggregation is true; expected false: gradients that are applied",
        ),
        (
            "numJobs=2;parallelizationMethod=DataParallelSGD;DataParallelSGD=[bits=1]",
            r"DataParallelSGD\.bits is not kn",
        ),
    ],
)
def test_faults_are_named(block, message):
    with pytest.raises(ConfigError, match=message):
        read(f"parallelTrain=[{block}]")


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"])
def test_mpi_processes_do_not_train_together(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert read("parallelTrain=[numJobs=2]") == ParallelOptions(2)
    monkeypatch.setenv(name, "4")
    assert read("") is None
    with pytest.raises(ConfigError, match=r"train.SGD.parallelTrain of 4 MPI processes.*; expected one .* numJobs=4"):
        read("parallelTrain=[parallelizationMethod=DataParallelSGD]")


@pytest.mark.parametrize(
    ("block", "around", "expected"),
    [
        ("", "", []),
        ("parallelTrain=[numJobs=2]", "", []),
        ("parallelTrain=false", "", []),
        (
            "parallelTrain=true",
            "",
            ["parallelTrain=true has no effect without a block parallelTrain=[numJobs=...] in SGD"],
        ),
        ("parallelTrain=[numJobs=2]", "parallelTrain=false", ["parallelTrain=false: one process trains"]),
        (
            "parallelTrain=[parallelizationMethod=DataParallelASGD]",
            "parallelTrain=true",
            ["train.SGD.parallelTrain has no effect without numJobs: one process trains"],
        ),
        (
            "parallelTrain=[numJobs=2;parallelizationMethod=none]",
            "",
            ["train.SGD.parallelTrain has no effect with parallelizationMethod=none: one process trains"],
        ),
        (
            "parallelTrain=[numJobs=2;distributedMBReading=true;DataParallelASGD=[x=1];ModelAveragingSGD=[MAPerfStats=1]]",
            "",
            [
                "distributedMBReading has no effect: jobs read their own shares",
                "DataParallelASGD has no effect: parallelizationMethod is ModelAveragingSGD",
                "ModelAveragingSGD.MAPerfStats has no effect: the history",
            ],
        ),
        (
            "parallelTrain=[numJobs=2;parallelizationMethod=DataParallelSGD;samplesPerIteration=9\n"
            "DataParallelSGD=[zeroThresholdFor1Bit=true]]",
            "",
            [
                "samplesPerIteration has no effect: parallelizationMethod is DataParallelSGD",
                "DataParallelSGD.zeroThresholdFor1Bit has no effect: gradients are not quantised",
            ],
        ),
    ],
)
def test_nothing_is_dropped_without_a_note(block, around, expected):
    text = f"{around}\ntrain=[\nSGD=[\nmaxEpochs=1\nlearningRatesPerMB=1\n{block}\n]\n]"
    notes = parallel_notes(Config.from_text(text, "p.cntk").block("train").block("SGD"))
    assert len(notes) == len(expected)
    for note, part in zip(notes, expected):
        assert note.startswith("p.cntk:")
        assert part in note
