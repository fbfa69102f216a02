"""Natural gradient compared with plain SGD, with 1, 2, 4, 8 and 16 jobs: Figure 1 and Table 2 of Povey et al. (2015).

worked example:
  python -m benchmarks.natural_gradient --data ~/corpora/an4 --out exp/an4
  python -m benchmarks.natural_gradient --out exp/synthetic --size demo
The first command uses AN4, the second a synthesised corpus with the layout of TIMIT.  Features, labels and graphs are
those of the recipes an4 and timit, and are made if they are missing.  All networks learn from the same archives of
examples, with the same initial weights and the same effective learning rate.  The recipe ends with a table of
objectives and error rates, and a picture of the objective against epochs and against the training time with one machine
per job.

  python -m benchmarks.natural_gradient ... --jobs 1,4 --methods plain,online --set NumEpochs=3
trains fewer networks, with other settings of benchmarks/natural_gradient/config/common.cntk.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from benchmarks.variants.corpora import AN4_GRID, select
from benchmarks.variants.task import Decoding
from readers.common.environment import available_cores
from readers.config.options import option
from readers.errors import ConfigError
from recipes.job import RecipeOptions, RecipeResult, overrides
from recipes.stage_settings import cntk_settings
from recipes.stages import Stage
from recipes.steps import cntk
from recipes.tuning import Grid

CONFIG = Path(__file__).parent / "config"
METHODS, JOBS = ("plain", "online", "simple"), (1, 2, 4, 8, 16)
SINGLE_JOB_METHOD = "simple"  # method that runs only with one job, as in the paper
WINDOW = 11  # frames in the input of the network
MAX_DECODED_ERROR = 0.6  # frame error on the development set above which a network is not used for decoding
PART_FRAMES = 25_000  # size of the part of the training set on which the objective is measured


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions(RecipeOptions):
    """Options of the comparison."""

    task: Literal["an4", "timit"] | None = option(None, "corpus (default: an4 with {data}, timit without)")
    size: Literal["demo", "full"] = option("demo", "size of the synthesised TIMIT")
    jobs: str = option(",".join(map(str, JOBS)), "numbers of jobs", metavar="N,...")
    methods: str = option(",".join(METHODS), "methods to compare", metavar="NAME,...")
    overrides: tuple[str, ...] = overrides("of config/common.cntk to replace, such as NumEpochs=3")

    def __post_init__(self) -> None:
        super().__post_init__()
        fine = self.task != "an4" or self.data is not None
        self.require("task", fine, "is an4 without {data}; expected the corpus")


@dataclass(frozen=True)
class Task:
    """A corpus with labels and graphs.

    stages: stages of its recipe that produce them.
    decoding: of dev and test.
    train_list: list of the training set; prefix: prefix of the names in it that are used.
    settings: of the configuration.
    """

    name: str
    title: str
    stages: Sequence[Stage]
    decoding: Mapping[str, Decoding]
    grid: Grid
    unit: str
    train_list: Path
    prefix: str = ""
    settings: Sequence[str] = ()
    fold: Mapping[str, str | None] | None = None


def an4_task(options: ComparisonOptions) -> Task:
    from recipes.an4.recipe import Recipe

    recipe = Recipe(options)
    graphs = {"dev": "tune-trained", "test": "trained"}
    return Task(
        "an4", "AN4",
        select(recipe.stages(), "lists", "features", "lm", "graph"),
        {
            name: Decoding(recipe.graph_folder(lm), recipe.lm_file(lm), recipe.out / "labels" / f"{name}.words.mlf")
            for name, lm in graphs.items()
        },
        AN4_GRID, "WER", recipe.out / "lists" / "train.scp", prefix="plain/",
        settings=[f"NumStates={recipe.num_states}"],
    )  # fmt: skip


def timit_task(options: ComparisonOptions) -> Task:
    from readers.tables.timit import read_phone_map
    from recipes.timit.grid import GRID
    from recipes.timit.prepare import PHONE_MAP
    from recipes.timit.run import Recipe

    recipe = Recipe(options, options.size)
    labels, lm = recipe.out / "labels", recipe.out / "lm.arpa"
    return Task(
        "timit", "synthesised TIMIT" if recipe.synthetic else "TIMIT",
        select(recipe.stages(), "corpus", "features", "labels", "lm", "graph"),
        {name: Decoding(recipe.out / "graph", lm, labels / f"{name}.phones.mlf") for name in ("dev", "test")},
        GRID, "PER", recipe.out / "lists" / "train.scp", fold=read_phone_map(PHONE_MAP),
    )  # fmt: skip


def parse_runs(methods: str, jobs: str) -> list[tuple[str, int]]:
    """Return the (method, number of jobs) of every run.  Raises ConfigError."""
    names = methods.split(",")
    unknown = [name for name in names if name not in METHODS]
    if unknown or len(set(names)) < len(names):
        raise ConfigError(f"command line: --methods {methods}; expected some of {','.join(METHODS)}, each once")
    if not all(count.isdecimal() and 0 < int(count) < 1000 for count in jobs.split(",")):
        raise ConfigError(f"command line: --jobs {jobs}; expected positive numbers separated by commas")
    counts = sorted({int(count) for count in jobs.split(",")})
    return [(name, count) for name in names for count in (counts[:1] if name == SINGLE_JOB_METHOD else counts)]


class Comparison:
    """The stages; their results are below `out`/natural_gradient, their inputs where the task's recipe stores them."""

    def __init__(self, options: ComparisonOptions):
        name = options.task or ("an4" if options.data else "timit")
        self.runs = parse_runs(options.methods, options.jobs)
        self.task = (an4_task if name == "an4" else timit_task)(options)
        self.out = options.out
        self.home = self.out / "natural_gradient"
        self.seed, self.overrides = options.seed, [*self.task.settings, *options.overrides]
        self.workers = options.workers or available_cores()

    def stages(self) -> list[Stage]:
        shared = [stage.name for stage in self.task.stages]
        data = tuple(name for name in shared if name not in ("lm", "graph"))
        trained = [
            Stage(f"ng-{method}-{jobs}", f"{method} with {jobs} {'job' if jobs == 1 else 'jobs'}",
                  partial(self.train, method, jobs), (*data, "ng-examples"),
                  self.cntk_settings("NG_Train:NG_TestTrain:NG_TestDev", method, jobs), self.folder(method, jobs))
            for method, jobs in self.runs
        ]  # fmt: skip
        return [
            *self.task.stages,
            Stage("ng-examples", "archives of the training examples", self.examples, data,
                  self.cntk_settings("NG_Examples")),
            *trained,
            Stage("ng-score", "error rates, table and picture", self.score,
                  (*shared, *(stage.name for stage in trained)), {"runs": [list(run) for run in self.runs]}),
        ]  # fmt: skip

    def folder(self, method: str, jobs: int) -> Path:
        return self.home / f"{method}-{jobs}"

    def model(self, method: str, jobs: int) -> Path:
        return self.folder(method, jobs) / "net"

    def cntk_arguments(self, method: str = METHODS[0], jobs: int = 1) -> list[str]:
        """Return the arguments of `cntk` for a run."""
        return [
            f"configFile={CONFIG / self.task.name}.cntk", f"ExpDir={self.out}", f"RunDir={self.folder(method, jobs)}",
            f"Method={method}", f"NumJobs={jobs}", f"randomSeed={self.seed}", *self.overrides,
        ]  # fmt: skip

    def cntk_settings(self, commands: str, method: str = METHODS[0], jobs: int = 1) -> dict[str, str]:
        return cntk_settings([*self.cntk_arguments(method, jobs), f"command={commands}"])

    def examples(self) -> int:
        from readers.htk.scp import read_scp, write_scp

        entries = [entry for entry in read_scp(self.task.train_list) if entry.logical.startswith(self.task.prefix)]
        write_scp(self.home / "train.scp", entries)
        frames = sum(entry.num_frames for entry in entries)
        write_scp(self.home / "part.scp", entries[:: max(1, frames // PART_FRAMES)])
        for old in self.home.glob("train.egs.*"):
            old.unlink()
        (self.home / "start").unlink(missing_ok=True)
        return cntk([*self.cntk_arguments(), "command=NG_Examples"])

    def train(self, method: str, jobs: int) -> int:
        """Train, measure averaged models, and keep the last one."""
        from acoustic.training.reporting.log import read_history
        from benchmarks.natural_gradient.curves import measure, measured_iterations, write_curve
        from readers.common.files import atomic_write

        model, start = self.model(method, jobs), self.home / "start"
        if start.exists() and not model.with_name("net.0").exists():
            # Statistics are computed and weights initialised only once.
            with atomic_write(model.with_name("net.0")) as file:
                file.write(start.read_bytes())
        lost = cntk([*self.cntk_arguments(method, jobs), "command=NG_Train"])
        if not start.exists():
            shutil.copyfile(model.with_name("net.0"), start)
        averaged = Path(f"{model}.parallel")
        rows = read_history(averaged / "history.jsonl")
        kept = {count: averaged / f"model.{count}" for count in measured_iterations(rows[-1]["iteration"])}
        write_curve(self.folder(method, jobs) / "curve.jsonl", measure(kept, rows, self.readers()))
        for path in averaged.glob("model.*"):
            path.unlink()
        return lost

    def readers(self) -> list[Callable]:
        """Return functions that open the training part and the development set."""
        from readers.config.config import load_config
        from readers.minibatches.base import open_reader

        config = load_config(self.cntk_arguments())
        return [partial(open_reader, config.block(name).block("reader")) for name in ("NG_TestTrain", "NG_TestDev")]

    def score(self) -> None:
        from acoustic.training.reporting.log import read_history
        from benchmarks.natural_gradient import results
        from benchmarks.natural_gradient.curves import iteration_seconds, read_curve
        from readers.common.files import atomic_write

        histories = {run: read_history(Path(f"{self.model(*run)}.parallel") / "history.jsonl") for run in self.runs}
        seconds = {
            method: iteration_seconds([rows for (name, _), rows in histories.items() if name == method])
            for method, _ in self.runs
        }
        curves = {run: read_curve(self.folder(*run) / "curve.jsonl") for run in self.runs}
        rates = self.error_rates([run for run in self.runs if curves[run][-1].dev_error < MAX_DECODED_ERROR])
        runs = [results.Run(*run, curves[run], seconds[run[0]], rates.get(run)) for run in self.runs]
        for path, text in ((self.table, results.table(runs, self.task.unit)),
                           (self.home / "rows.md", results.markdown(runs))):  # fmt: skip
            with atomic_write(path, "w") as file:
                file.write(text)
        epochs = round(runs[0].curve[-1].epochs)
        results.draw(runs, self.picture, f"{self.task.title}, {epochs} epochs, equal effective learning rates")

    def error_rates(self, runs: Sequence[tuple[str, int]]) -> dict[tuple[str, int], dict[str, float]]:
        """Return the error rates of dev and test; search options are chosen on dev with the run in the middle."""
        from decoder.scoring.words import read_words
        from recipes.decoding import choose_options, open_decoder, score_utterances, store_choice
        from recipes.tuning import Development, decode_and_score

        def development(run: tuple[str, int], name: str) -> Development:
            scores = score_utterances(self.model(*run), self.out / "lists" / f"{name}.scp", WINDOW)
            return Development(scores, read_words(self.task.decoding[name].references), fold=self.task.fold)

        decoders = {name: open_decoder(one.graph, one.lm) for name, one in self.task.decoding.items()}
        online = [run for run in runs if run[0] == "online"] or runs
        if not online:
            return {}
        tuned = online[len(online) // 2]
        options, _ = choose_options(
            decoders["dev"], development(tuned, "dev"), self.task.grid, self.home / "scales.json", self.workers
        )
        for one in self.task.decoding.values():
            store_choice(one.graph, options, self.model(*tuned), one.lm, replace=False)
        decoders = {name: decoder.with_options(**options) for name, decoder in decoders.items()}
        print(f"search options, chosen with {tuned[0]}, {tuned[1]} jobs: {options}", flush=True)
        return {
            run: {
                name: decode_and_score(decoder, development(run, name), self.workers).score.word_error_rate
                for name, decoder in decoders.items()
            }
            for run in runs
        }

    @property
    def table(self) -> Path:
        return self.home / "table.txt"

    @property
    def picture(self) -> Path:
        return self.home / "figure.png"

    def result(self) -> RecipeResult:
        lines = [f"picture: {self.picture}", f"rows for RESULTS.md: {self.home / 'rows.md'}"]
        lines += self.table.read_text(encoding="utf-8").splitlines()
        return RecipeResult(pictures=(self.picture,), lines=tuple(lines))


RECIPE = ComparisonOptions, Comparison
