"""Commands on a cluster of four processes: the bits of one machine, whoever is killed; no memory, no disk space."""

import re
import time
from pathlib import Path

import pytest

from readers.common.jobs import durations
from readers.common.temporary import NAME
from readers.htk.mlf import Label, write_mlf
from tests.recipes.cluster import sabotage
from tests.recipes.systems.small_system import DECODE, FIRST_OF_TEST

pytestmark = pytest.mark.slow

WORKER = r"worker tcp://127\.0\.0\.1:\d+ \(.+?\)"
HCOPY = ("hcopy", "-C", "hcopy.config", "-S", "new.list", "--scp", "new.scp", "--report", "report")
FLAT = (
    *("flatstart", "--features", "train.scp", "--words", "spoken.mlf", "--dict", "dict", "--out", "flat"),
    *("--gaussians", "24", "--first-passes", "3", "--passes", "1"),
)
ALIGN = (
    *("argon", "-graph", "graph/graph.dg", "-am", "model/net", "-cntkmap", "graph/cntkmap", "-dnn_window_size", "3"),
    *("-infiles", "test.scp", "-alignmlf", "words.mlf", "--dict", "dict", "-detailed-alignment"),
    *("-outmlf", "results/states.mlf", "--words", "results/words.json"),
)
LATTICES = (
    *("argon", *DECODE[:-2], "-infiles", "test.scp", "-outmlf", "results/out.mlf"),
    *("-lattice-prefix", "results/lattice", "--words", "results/out.ctm"),
)


@pytest.fixture(scope="module")
def client():
    """A client of a cluster of four processes, each of one thread."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def cluster(client, user, monkeypatch):
    """The user, and the options of the cluster; shards are small."""
    monkeypatch.setattr(durations, "LEAST_SECONDS", 0.01)
    monkeypatch.setattr("decoder.gaussians.shards.SHARD_UTTERANCES", 4)
    text = (user.root / "text").read_text().splitlines()
    entries = ((f"*/utt{i:02}.lab", [Label(None, None, word) for word in line.split()]) for i, line in enumerate(text))
    write_mlf("spoken.mlf", entries)
    Path("new.list").write_text(Path("hcopy.list").read_text().replace("feat/", "results/"))
    return user, ("--scheduler", client.cluster.scheduler_address)


@pytest.fixture
def sabotaged(client):
    """A function that does something to so many workers, which is undone at the end."""

    def begin(function, *arguments, count: int) -> None:
        wait_for_workers(client)
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])[:count]
        client.run(function, *arguments, workers=workers)

    yield begin
    client.run(sabotage.mend)


def wait_for_workers(client) -> None:
    """Wait until there are four workers, also in place of one that was killed."""
    end = time.monotonic() + 60
    while len(client.scheduler_info(n_workers=-1)["workers"]) < 4:
        assert time.monotonic() < end
        time.sleep(0.02)


def results(user, *command) -> tuple[dict[str, bytes], list[str]]:
    """The files that a command writes, and what it prints but for times; the files are removed."""
    outcome = user.run(*command)
    assert outcome.status == 0, outcome.err
    found = {}
    for path in (Path("new.scp"), Path("report"), *Path().glob("results/*"), *Path().glob("flat/*")):
        if path.exists() and path.suffix != ".png":
            assert not NAME.fullmatch(path.name)
            found[str(path)] = path.read_bytes()
            path.unlink()
    return found, [re.sub(r"factor [\d.]+", "", line) for line in outcome.out]


@pytest.mark.parametrize("command", [HCOPY, ALIGN, LATTICES, FLAT], ids=["hcopy", "align", "lattices", "flat"])
def test_a_worker_that_is_killed_in_the_middle_changes_no_bit(cluster, sabotaged, tmp_path, command):
    user, place = cluster
    one = results(user, *command)
    assert len(one[0]) > 1
    (tmp_path / "shards").mkdir()
    sabotaged(sabotage.kill_in_the_middle, str(tmp_path / "shards"), count=4)
    assert results(user, *command, *place) == one
    assert (tmp_path / "shards" / "killed").exists()


def test_a_worker_without_memory_or_disk_hands_its_work_to_others(cluster, sabotaged):
    user, place = cluster
    one = results(user, *LATTICES)
    sabotaged(sabotage.no_memory_for, f"feat/{FIRST_OF_TEST}", count=2)
    assert results(user, *LATTICES, *place) == one
    one = results(user, *HCOPY)
    sabotaged(sabotage.no_space_for, "utt03.fb", count=2)
    assert results(user, *HCOPY, *place) == one


def test_only_the_utterance_that_is_the_cause_is_lost(cluster, sabotaged):
    user, place = cluster
    one, _ = results(user, *LATTICES)
    sabotaged(sabotage.no_memory_for, f"feat/{FIRST_OF_TEST}", count=4)
    outcome = user.run(*LATTICES, *place)
    assert outcome.status == 1
    assert outcome.out[-1].startswith("utterances: 5 done, 0 skipped, 1 failed; ")
    (line,) = Path("results/out.mlf.report").read_text().splitlines()[1:]
    reason = rf"{WORKER}: out of memory \(Unable to allocate 9 GiB\)"
    assert re.fullmatch(rf"feat/{FIRST_OF_TEST}\tfailed\tshard \d+.*: lost 3 times, the last by {reason}", line)
    assert re.search(rf"warning: shard \d+: lost \({reason}\); repeated", "\n".join(outcome.err))
    for number in range(2, 7):
        assert Path(f"results/lattice{number}.lat").read_bytes() == one[f"results/lattice{number}.lat"]
    assert Path("results/lattice.index").read_bytes() == one["results/lattice.index"].split(b"\n", 1)[1]

    sabotaged(sabotage.no_space_for, "utt03.fb", count=4)
    outcome = user.run(*HCOPY, *place)
    assert outcome.status == 1
    assert outcome.out[-1] == "files: 29 done, 0 skipped, 1 failed"
    reason = rf"{WORKER}: results/utt03\.fb: cannot be written \(No space left on device\)"
    assert re.search(rf"audio/utt03\.wav\tfailed\t.*{reason}", Path("report").read_text())


def test_processes_of_this_machine_change_no_bit(user, monkeypatch):
    monkeypatch.setattr(durations, "LEAST_SECONDS", 0.01)
    one = results(user, *LATTICES)
    assert results(user, *LATTICES, "--workers", "2") == one


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--workers", "0"), "command line: --workers is 0; expected at least 1"),
        (
            ("--workers", "1", "--scheduler", "tcp://x"),
            "command line: --workers is given with --scheduler; expected only one",
        ),
        (("--workers", "1", "-precompile"), "command line: --workers is given without a list of utterances;"),
        (("--scheduler", "tcp://x", "-precompile"), "command line: --scheduler is given without a list of utterances;"),
    ],
)
def test_options_that_do_not_go_together(user, options, fault):
    assert fault in user.run(*LATTICES, *options).fault
