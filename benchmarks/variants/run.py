"""The example setups of the CNTK book, trained in sequence and decoded with the same graph and language model.

worked example:
  python -m benchmarks.variants an4 --data ~/corpora/an4 --out exp/an4
trains the eight example setups of the book (7.1.1-7.1.9) on AN4 and ends with their frame and word error rates.  Lists,
labels, language models and graphs are those of recipe an4, and are made if they are missing.
  python -m benchmarks.variants timit --data /corpora/TIMIT --out exp/timit --only recurrent
trains an LSTM, an LSTM with projection and a bidirectional one on TIMIT, and ends with phone error rates; without
--data, on a synthesised corpus with its layout.

The setups of the book share their search options; recurrent networks, whose outputs are sharper, have their own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from benchmarks.variants.corpora import CONFIG, CORPORA
from benchmarks.variants.names import RECURRENT, VARIANTS, parse_names
from benchmarks.variants.table import Row
from benchmarks.variants.task import Task
from readers.common.environment import available_cores
from readers.config.options import option
from recipes.job import RecipeOptions, RecipeResult, overrides
from recipes.stage_settings import cntk_settings, file_settings
from recipes.stages import Stage
from recipes.steps import cntk, extract

FEATURES = {"fbank": CONFIG / "fbank24_zda.hcopy", "mfcc": CONFIG / "mfcc13_zda.hcopy"}
SETS = ("train", "dev", "test")
DECODED_SETS = ("dev", "test")
TRAININGS = {"bottleneck": ("encoder", "model"), "pretrain": ("layer1", "layer2", "model")}  # others: only "model"
ERRORS = ("EvalErrorPrediction", "Err")  # names of the frame error node in SimpleNetworkBuilder and in the NDL files
CONFUSED, CONFUSED_NODE = "simple", "HLast"  # variant and node whose phone confusions are drawn


@dataclass(frozen=True, kw_only=True)
class VariantsOptions(RecipeOptions):
    """Options of the comparison."""

    corpus: Literal["an4", "timit"] = option(help="recipe that prepares the corpus", flag="corpus")
    only: str = option(
        "all", "variants to train: all (the book's example setups), recurrent, or a list NAME,... of "
        f"{', '.join(VARIANTS)}", metavar="NAMES",
    )  # fmt: skip
    size: Literal["demo", "full"] = option("full", "size of timit's synthesised corpus")
    overrides: tuple[str, ...] = overrides("of the training to replace, such as SGD=[maxEpochs=4]")


def variants_of(options: VariantsOptions) -> "Variants":
    """Return the stages of the corpus and of the variants."""
    names, corpus = parse_names(options.only), CORPORA[options.corpus](options, options.size)
    workers, overrides = options.workers or available_cores(), [*corpus.settings, *options.overrides]
    return Variants(corpus.task, names, options.out, options.seed, workers, overrides, corpus.stages)


RECIPE = VariantsOptions, variants_of


class Variants:
    """Stages over a task, after those of its corpus; all files are below `out`/variants."""

    def __init__(
        self,
        task: Task,
        names: Sequence[str],
        out: Path,
        seed: int,
        workers: int,
        overrides: Sequence[str] = (),
        before: Sequence[Stage] = (),
    ):
        self.task, self.names, self.out, self.seed = task, names, out, seed
        self.workers, self.overrides, self.before = workers, list(overrides), before
        self.work = out / "variants"
        self.lists = self.work / "lists"

    def stages(self) -> list[Stage]:
        data = "variant-data"
        trained = [
            Stage(
                f"variant-{name}",
                VARIANTS[name],
                self.choose_epoch if name == "crossvalidate" else lambda name=name: self.train(name),
                needs=("variant-simple",) if name == "crossvalidate" else (data,),
                settings=cntk_settings(self.cntk_arguments(name)),
                work=self.work / name,
            )
            for name in self.names
        ]
        scaled = [
            Stage(f"variant-scales-{name}" if name in RECURRENT else "variant-scales",
                  f"search options, on the development set, with {name}", lambda name=name: self.scales(name),
                  needs=("graph", f"variant-{name}"), settings={"variant": name})
            for name in dict.fromkeys(map(self.scaled_with, self.names))
        ]  # fmt: skip
        own = {"variants": self.names}
        return [
            *self.before,
            Stage(data, "features and lists of the variants", self.data, (self.task.data_stage,),
                  file_settings(*FEATURES.values())),
            *trained,
            *scaled,
            Stage("variant-score", "frame errors, decoding, table and pictures", self.score,
                  needs=("graph", *(stage.name for stage in (*scaled, *trained))), settings=own),
        ]  # fmt: skip

    # Features and lists

    def data(self) -> int:
        from benchmarks.variants import lists
        from readers.htk.scp import write_pairs

        lost, sets = 0, self.task.sets()
        for kind, config in FEATURES.items():
            if kind != "fbank" or self.task.fbank is None:
                pairs = [(i.audio, self.feature_file(kind, i.name)) for name in SETS for i in sets[name]]
                write_pairs(self.lists / f"{kind}.hcopy.list", pairs)
                listed, report = self.lists / f"{kind}.hcopy.list", self.work / "reports" / f"features.{kind}"
                lost |= extract(config, listed, self.workers, report=report)
            files = {name: [(item.name, self.feature_file(kind, item.name)) for item in sets[name]] for name in SETS}
            report = lists.write_feature_lists(self.lists, kind, files)
            report.write(self.work / "reports" / f"lists.{kind}")
            print(report.summary())
            lost |= report.exit_status
        lists.write_groups(self.work / "labels", self.lists, {name: sets[name] for name in ("train", "dev")})
        for name in SETS:
            scp = self.lists / f"{name}.fbank.scp"
            target = self.work / "bottleneck" / "features"
            outputs = lists.write_output_list(self.lists / f"{name}.bottleneck.out", scp, target, ".bottleneck")
            lists.write_future_list(self.lists / f"{name}.bottleneck.scp", scp, outputs)
        for variant in VARIANTS:
            for name in DECODED_SETS:
                scp, target = self.lists / f"{name}.fbank.scp", self.work / variant / "output" / name
                lists.write_output_list(self.lists / f"{variant}.{name}.out", scp, target, ".loglikelihood")
        return lost

    def feature_file(self, kind: str, name: str) -> Path:
        if kind == "fbank" and self.task.fbank is not None:
            return self.task.fbank(name)
        return self.work / "features" / kind / f"{name}.{kind}"

    # Training

    def cntk_arguments(self, name: str) -> list[str]:
        """Return the arguments of `cntk` for a variant."""
        return [
            f"configFile={self.task.config}+{CONFIG / name}.cntk", f"ExpDir={self.out}", f"ScriptDir={CONFIG}",
            f"randomSeed={self.seed}", *self.overrides,
        ]  # fmt: skip

    def train(self, name: str) -> int:
        return cntk(self.cntk_arguments(name))

    def choose_epoch(self) -> int:
        """Evaluate every epoch of `simple`; write the outputs of the one with the lowest development frame error."""
        epochs = self.history("simple", "model")[-1]["epoch"]
        arguments = self.cntk_arguments("crossvalidate")
        lost = cntk([*arguments, f"CrossValidate=[crossValidationInterval=1:1:{epochs}]"])
        print(f"best epoch: {self.best_epoch()} of {epochs}", flush=True)
        return lost | cntk([*arguments, "command=WriteDev:WriteTest", f"modelPath={self.model('crossvalidate')}"])

    def history(self, name: str, training: str) -> list[dict]:
        from acoustic.training.reporting.log import read_history

        return read_history(self.work / name / training / "net.history.jsonl")

    def best_epoch(self) -> int:
        """Return the epoch of `simple` with the lowest frame error on the development set, the first of several."""
        rows = self.history("simple", "model")
        return min(rows, key=lambda row: (frame_error(row["validation"]), row["epoch"]))["epoch"]

    def model(self, name: str) -> Path:
        """Return the final model of a variant."""
        if name != "crossvalidate":
            return self.work / name / "model" / "net"
        rows, epoch = self.history("simple", "model"), self.best_epoch()
        final = self.model("simple")
        return final if epoch == rows[-1]["epoch"] else Path(f"{final}.{epoch}")

    # Decoding

    def development(self, variant: str, name: str):
        """Return the outputs of a variant for a set, and the references."""
        from benchmarks.variants.outputs import read_outputs
        from decoder.scoring.words import read_words
        from recipes.tuning import Development

        references = read_words(self.task.decoding[name].references)
        scores = read_outputs(self.lists / f"{name}.fbank.scp", self.lists / f"{variant}.{name}.out")
        return Development(scores, references, fold=self.task.fold)

    def scaled_with(self, name: str) -> str:
        """Return the variant with which search options are chosen for this variant: recurrent ones have their own."""
        return name if name in RECURRENT else next(other for other in self.names if other not in RECURRENT)

    def scales_file(self, name: str) -> Path:
        return self.work / (f"scales.{name}.json" if name in RECURRENT else "scales.json")

    def scales(self, name: str) -> None:
        from recipes.decoding import choose_options, open_decoder, store_choice

        decoding = self.task.decoding["dev"]
        chosen, score = choose_options(
            open_decoder(decoding.graph, decoding.lm), self.development(name, "dev"), self.task.grid,
            self.scales_file(name), self.workers,
        )  # fmt: skip
        for decoding in self.task.decoding.values():  # all variants and the recipe's own network share the graphs
            store_choice(decoding.graph, chosen, self.model(name), decoding.lm, replace=False)
        shown = ", ".join(f"{option} {value:g}" for option, value in chosen.items())
        print(f"dev {self.task.unit} {score.word_error_rate:.1f}% ({name}): {shown}", flush=True)

    def score(self) -> None:
        from benchmarks.variants.table import draw_table, markdown_rows, text_table
        from readers.common.files import atomic_write
        from recipes.decoding import open_decoder, read_choice
        from recipes.tuning import decode_and_score

        decoders = {name: open_decoder(decoding.graph, decoding.lm) for name, decoding in self.task.decoding.items()}
        rows = []
        for variant in self.names:
            options, rates = read_choice(self.scales_file(variant)), {}
            for name, decoder in decoders.items():
                development = self.development(variant, name)
                outcome = decode_and_score(decoder.with_options(**options), development, self.workers)
                rates[name] = outcome.score.word_error_rate
            rows.append(self.row(variant, rates))
        with atomic_write(self.work / "results.json", "w") as file:
            json.dump([asdict(row) for row in rows], file, indent=1)
        for path, text in (
            (self.table, text_table(rows, self.task.unit)),
            (self.work / "rows.md", markdown_rows(rows)),
        ):
            with atomic_write(path, "w") as file:
                file.write(text)
        draw_table(rows, self.task.unit, self.work / "variants.png")
        if CONFUSED in self.names:
            self.draw_confusions()

    def row(self, name: str, rates: Mapping[str, float]) -> Row:
        source = "simple" if name == "crossvalidate" else name
        histories = [self.history(source, training) for training in TRAININGS.get(source, ("model",))]
        last = histories[-1][-1]
        if name == "crossvalidate":
            last = next(row for row in histories[-1] if row["epoch"] == self.best_epoch())
        epochs = "+".join(str(rows[-1]["epoch"]) for rows in histories)
        return Row(
            name=name,
            about=VARIANTS[name],
            epochs=str(last["epoch"]) if name == "crossvalidate" else epochs,
            train_error=100 * frame_error(last["training"]),
            dev_error=100 * self.dev_error(name),
            dev_words=rates["dev"],
            test_words=rates["test"],
            seconds=sum(row["seconds"] for rows in histories for row in rows),
        )

    def reader(self, name: str):
        """Return the reader block of a variant's development set, with labels."""
        from readers.config.config import load_config

        config = load_config(self.cntk_arguments("simple" if name == "crossvalidate" else name))
        return config.block("Test").block("reader")

    def dev_error(self, name: str) -> float:
        """Return the frame error of a variant's final model on the development set, as a fraction."""
        from acoustic.engine.engine import Engine
        from acoustic.network.model_file import load_model
        from acoustic.training.evaluation import sum_figures
        from readers.minibatches.base import open_reader

        network = load_model(self.model(name))
        node = next(node for node in ERRORS if node in network.nodes)
        with open_reader(self.reader(name)) as reader:
            totals = sum_figures(Engine(network, [node]), reader.minibatches(0, 4096, 0), [node])
        return totals.averages()[node]

    def draw_confusions(self) -> None:
        """Draw the phone confusions after the first and after the last epoch (Fig. 1.4 of the book)."""
        from benchmarks.variants.frames import classified_frames, draw_confusions, phone_confusions
        from readers.htk.frame_labels import read_state_list
        from readers.tables.state_names import state_map_of

        states = read_state_list(self.task.states)
        state_map = state_map_of(states)
        final = self.model(CONFUSED)
        last = self.history(CONFUSED, "model")[-1]["epoch"]
        panels = []
        for epoch, model in {1: Path(f"{final}.1") if last > 1 else final, last: final}.items():
            classes, guesses = classified_frames(model, CONFUSED_NODE, self.reader(CONFUSED))
            panels.append((f"epoch {epoch}", phone_confusions(classes, guesses, states, state_map)))
        draw_confusions(panels, list(state_map), self.work / "confusions.png")

    @property
    def table(self) -> Path:
        return self.work / "table.txt"

    def result(self) -> RecipeResult:
        pictures = [self.work / "variants.png"] + [self.work / "confusions.png"] * (CONFUSED in self.names)
        lines = [f"pictures: {' '.join(map(str, pictures))}", f"rows for RESULTS.md: {self.work / 'rows.md'}"]
        lines += self.table.read_text(encoding="utf-8").splitlines()
        return RecipeResult(pictures=tuple(pictures), lines=tuple(lines))


def frame_error(figures: Mapping[str, float]) -> float:
    """Return the frame error among the figures of an epoch."""
    return next(figures[name] for name in ERRORS if name in figures)
