"""A recogniser of PyTorch and kaldi-decoder against ours, on the same recordings, alignments and language model.

    python -m benchmarks.speech_peer exp/mine/first/model/own.dnn --graph exp/mine/graph/trained
           --dict exp/mine/words.dict --lm exp/mine/lm/trained.arpa --lists exp/mine/lists --labels exp/mine/labels
           --out exp/peer [--dev NAME] [--best MODEL GRAPH] [--trials N] [--epochs N] [--limit N]

MODEL is a network of `argonaut recipe own` that was trained with cross entropy.  The peer has its layers, trains with
its lists, labels, minibatches and epochs (MODEL.config), with our reader, and is searched by kaldi-decoder's
FasterDecoder in an HCLG that is made by the steps of Kaldi's mkgraph.sh of the same dictionary, models and language
model.  --best is our best network beside it, such as one of lattice-free MMI, with its own graph.

How the peer is trained is chosen on dev, see benchmarks/speech_network.py: each of CANDIDATES is trained for --trials
epochs with a whole schedule; the one with the lowest development loss is trained in full, and its best epoch counts.
For all systems the acoustic weight, the word penalty and the beam are chosen on dev, at a language model weight of 1,
by the same procedure.

What is done stays in --out: a run that was stopped goes on after the last epoch, or the last system.  One thread;
times are CPU times.  RATIO lines, above 1 ours is better: word errors, trained frames per second, time to score and
search the test set.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import ONE_THREAD
from benchmarks.speech_network import CANDIDATES, feature_size, train_peer, training_block

FRAMES_PER_SECOND = 100
TIMED_FRAMES = 25_600  # on which the rate of our training is measured
SEARCH = {"lm_scale": 1.0, "sil_cost": 0.0, "word_end_beam_frac": 1.0}


def main(argv: list[str] | None = None) -> int:
    """Print what each system does, and the RATIO lines."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speech_peer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, help="network with MODEL.config beside it")
    for name in ("graph", "lm", "dict", "lists", "labels", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--silence", default="sil", help="model of silence (default sil)")
    parser.add_argument("--best", type=Path, nargs=2, metavar=("MODEL", "GRAPH"))
    parser.add_argument("--trials", type=int, default=2, help="epochs of each candidate; 0: take the first (default 2)")
    parser.add_argument("--epochs", type=int, help="of the peer (default: as of MODEL)")
    parser.add_argument("--epoch-frames", type=int, help="of the peer (default: as of MODEL)")
    parser.add_argument("--dev", default="dev", help="name of the list and labels to tune on (default dev)")
    parser.add_argument("--limit", type=int, help="utterances of dev and test (default all)")
    arguments = parser.parse_args(argv)
    try:
        import kaldi_decoder  # noqa: F401
        import torch
    except ImportError as fault:
        print(f"speech-peer: {fault}; pip install '.[bench]' in the project's directory", file=sys.stderr)
        return 2
    if any(os.environ.get(name) != count for name, count in ONE_THREAD.items()):
        words = sys.argv[1:] if argv is None else argv
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.speech_peer", *words], os.environ | ONE_THREAD)
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    names = {"dev": arguments.dev, "test": "test"}
    data = {use: read_set(arguments.lists, arguments.labels, name, arguments.limit) for use, name in names.items()}
    ours = partial(our_system, lm=arguments.lm, data=data)
    systems = {"ours": lambda: ours("ours", arguments.model, arguments.graph)}
    if arguments.best:
        systems["ours, best"] = lambda: ours("ours, best", *arguments.best)
    systems["PyTorch"] = lambda: peer_system(torch, arguments, data)
    outcomes = [stored_outcome(arguments.out / f"{name}.json", measure) for name, measure in systems.items()]
    print("\n".join(table(outcomes)))
    print("\n".join(ratios(outcomes)))
    return 0


def stored_outcome(path: Path, measure: Callable[[], "Outcome"]) -> "Outcome":
    """The outcome in a file; it is measured if there is none."""
    from readers.common.files import write_json

    if not path.exists():
        write_json(path, asdict(measure()))
    return Outcome(**json.loads(path.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Set:
    """Utterances: feature files by name, and references."""

    files: Mapping[str, str]
    references: Mapping[str, list[str]]


def read_set(lists: Path, labels: Path, name: str, limit: int | None) -> Set:
    from decoder.scoring.words import read_words
    from readers.htk.scp import read_scp

    references = read_words(labels / f"{name}.words.mlf")
    entries = [entry for entry in read_scp(lists / f"{name}.scp") if entry.key in references][:limit]
    return Set({entry.key: entry.path for entry in entries}, {entry.key: references[entry.key] for entry in entries})


@dataclass(frozen=True)
class Outcome:
    """Of a system: errors on test, CPU seconds of its parts, trained frames per second, and the hours of training."""

    name: str
    num_errors: int
    num_words: int
    score_seconds: float
    search_seconds: float
    audio_seconds: float
    frames_per_second: float
    hours: float

    @property
    def word_error_rate(self) -> float:
        return 100 * self.num_errors / self.num_words

    @property
    def real_time_factor(self) -> float:
        return (self.score_seconds + self.search_seconds) / self.audio_seconds


def table(outcomes: Iterable[Outcome]) -> list[str]:
    """A line for each system."""
    lines = [f"{'system':<12} {'WER':>6} {'frames/s':>9} {'hours':>6} {'scores':>7} {'search':>7} {'RTF':>7}"]
    for one in outcomes:
        parts = (one.score_seconds / one.audio_seconds, one.search_seconds / one.audio_seconds, one.real_time_factor)
        lines.append(
            f"{one.name:<12} {one.word_error_rate:>5.1f}% {one.frames_per_second:>9.0f} {one.hours:>6.2f} "
            + " ".join(f"{part:>7.4f}" for part in parts)
        )
    return lines


def ratios(outcomes: list[Outcome]) -> list[str]:
    """The peer, which is the last, against each of ours."""
    peer = outcomes[-1]
    lines = []
    for one in outcomes[:-1]:
        kind = "-best" if one.name != "ours" else ""
        lines += [
            f"RATIO speech-words{kind} {peer.word_error_rate / one.word_error_rate:.2f}",
            f"RATIO speech-training{kind} {one.frames_per_second / peer.frames_per_second:.2f}",
            f"RATIO speech-decoding{kind} {peer.real_time_factor / one.real_time_factor:.2f}",
        ]
    return lines


def test_system(
    name: str, decoder: Any, score: Callable[[Any], Any], acweights: tuple[float, ...], data: Mapping[str, Set]
) -> tuple[int, int, float, float, float]:
    """Tune on dev, decode test; return (errors, words, seconds of scores, of search, of the audio).

    decoder: with `with_options` and `decode` like ours; score: features (d, T) -> log-likelihoods (K, T).
    """
    from decoder.scoring.error_counts import score as count_errors
    from readers.htk.parameter_file import read_htk
    from recipes.tuning import Development, Grid, choose

    grid = Grid(
        start={"acweight": acweights[len(acweights) // 2], "word_penalty": 0.0},
        values={"acweight": acweights, "word_penalty": (-2.0, -1.0, 0.0, 1.0, 2.0, 4.0)},
        beams=(11.0, 13.0, 15.0),
        fixed={},
    )
    dev = {key: score(read_htk(path).frames) for key, path in data["dev"].files.items()}
    options, trials = choose(decoder, Development(dev, data["dev"].references), grid, 1)
    best = next(outcome.score for chosen, outcome in trials if chosen == options)
    print(f"{name}: {options}, WER {best.word_error_rate:.1f}% on dev", flush=True)
    tuned = decoder.with_options(**options)
    texts, spent, frames = {}, [0.0, 0.0], 0
    for key, path in data["test"].files.items():
        features = read_htk(path).frames
        frames += features.shape[1]
        begin = time.thread_time()
        scores = score(features)
        middle = time.thread_time()
        texts[key] = tuned.decode(scores).text
        spent[0] += middle - begin
        spent[1] += time.thread_time() - middle
    total = count_errors(data["test"].references, texts).total
    return total.num_errors, total.num_words, *spent, frames / FRAMES_PER_SECOND


# ---- ours


def our_system(name: str, model: Path, graph: Path, lm: Path, data: Mapping[str, Set]) -> Outcome:
    from acoustic.scoring.opening import open_scorer
    from recipes.decoding import open_decoder

    block = training_block(model)
    is_chain = block.block("reader").has("chain")
    window = 0
    for _, features in block.block("reader").blocks():
        if features.has("scpFile"):
            window = features.int("contextWindow", 0) or features.int("dim") // feature_size(features.path("scpFile"))
            break
    scorer = open_scorer(model, window=window)
    decoder = open_decoder(graph, lm).with_options(**SEARCH)
    acweights = (0.5, 0.7, 1.0, 1.4, 2.0) if is_chain else (0.05, 0.07, 0.1, 0.14, 0.2, 0.28)
    tested = test_system(name, decoder, scorer.score, acweights, data)
    rate = our_rate(model)
    sgd = block.block("SGD")
    subsampling = block.block("reader").int("frameSubsampling", 1)
    frames = sgd.int("epochSize") * sgd.int("maxEpochs") * subsampling
    return Outcome(name, *tested, rate, frames / rate / 3600)


def our_rate(model: Path) -> float:
    """Frames per CPU second of our training, which goes on from the trained network, without validation."""
    from acoustic import load_model
    from acoustic.training.configuration import training_options
    from acoustic.training.trainer import Trainer
    from benchmarks.time_to_loss import timed_learner
    from readers.minibatches.base import open_reader

    subsampling = training_block(model).block("reader").int("frameSubsampling", 1)
    block = training_block(model, f"SGD=[epochSize={TIMED_FRAMES // subsampling};maxEpochs=2]")
    with open_reader(block.block("reader"), 0) as reader:
        options = replace(training_options(block.block("SGD")), seed=0)
        trainer = Trainer(load_model(model), reader, options, None, make_learner=timed_learner())
        trainer.prepare(None)
        trainer.run_epoch(0)  # compiles
        compiled = trainer.learner.cpu
        trainer.run_epoch(1)
        samples = trainer.history[-1]["samples"]
    return samples * subsampling / (trainer.learner.cpu - compiled)


# ---- the peer


def peer_system(torch: Any, arguments: argparse.Namespace, data: Mapping[str, Set]) -> Outcome:
    graph_file = arguments.out / "hclg.fst"
    words, arrays = peer_graph(graph_file, arguments)
    epochs = arguments.epochs or training_block(arguments.model).block("SGD").int("maxEpochs")
    train = partial(train_peer, torch, arguments.model, arguments.epoch_frames)
    recipe = CANDIDATES[0]
    if arguments.trials:
        losses = {}
        for number, candidate in enumerate(CANDIDATES):
            trained = train(candidate, arguments.trials, arguments.out / f"trial{number}.safetensors")
            losses[candidate] = min(row["loss"] for row in trained.history)
            print(f"trial: {candidate}: development loss {losses[candidate]:.4f}", flush=True)
        recipe = min(losses, key=losses.__getitem__)
    print(f"peer: {recipe}, {epochs} epochs", flush=True)
    trained = train(recipe, epochs, arguments.out / "peer.safetensors")
    score = partial(trained.score, torch)
    tested = test_system("PyTorch", KaldiSearch(words, arrays), score, (0.05, 0.07, 0.1, 0.14, 0.2, 0.28), data)
    frames, seconds = (sum(row[name] for row in trained.history) for name in ("frames", "seconds"))
    return Outcome("PyTorch", *tested, frames / seconds, seconds / 3600)


def peer_graph(path: Path, arguments: argparse.Namespace) -> tuple[list[str], Any]:
    """The words of our graph, and the peer's HCLG as arrays; it is kept."""
    import kaldifst

    from benchmarks.kaldi_triphones import build_triphone_hclg, stored_hclg
    from decoder.graph.openfst import from_openfst
    from decoder.graph.phone_models import PhoneModels
    from readers.dictionaries.forms import read_any_dictionary
    from recipes.decoding import open_decoder

    decoder = open_decoder(arguments.graph, arguments.lm).with_options(**SEARCH, word_penalty=0.0)
    words = decoder.graph.words
    vocabulary = set(words)

    def build() -> Any:
        entries = [entry for entry in read_any_dictionary(arguments.dict) if entry.word in vocabulary]
        models = PhoneModels.load(arguments.graph)
        return build_triphone_hclg(decoder, entries, models, None, arguments.silence)

    return words, from_openfst(kaldifst.StdVectorFst(stored_hclg(path, build)), transducer=True)


@dataclass(frozen=True)
class Result:
    """Of a search, as `recipes.tuning` reads it."""

    text: list[str]
    reason: str
    widenings: int = 0


class KaldiSearch:
    """kaldi-decoder's FasterDecoder with the interface of our decoder, as far as tuning needs it."""

    def __init__(self, words: list[str], arrays: Any, graphs: dict | None = None, **options: float) -> None:
        self.words, self.arrays, self.options = words, arrays, options
        self.graphs = {} if graphs is None else graphs  # by word penalty; one is kept

    def with_options(self, **options: float) -> "KaldiSearch":
        return KaldiSearch(self.words, self.arrays, self.graphs, **{**self.options, **options})

    def graph(self) -> Any:
        """The HCLG with the word penalty on its output labels."""
        import kaldifst

        from decoder.graph.openfst import to_openfst

        penalty = self.options["word_penalty"]
        if penalty not in self.graphs:
            self.graphs.clear()
            cost = self.arrays.cost + (penalty * (self.arrays.output > 0)).astype("float32")
            self.graphs[penalty] = kaldifst.StdConstFst(to_openfst(replace(self.arrays, cost=cost)))
        return self.graphs[penalty]

    def decode(self, scores: Any) -> Result:
        import kaldi_decoder
        import kaldifst
        import numpy as np

        options = kaldi_decoder.FasterDecoderOptions(beam=self.options["beam"])
        search = kaldi_decoder.FasterDecoder(self.graph(), options)
        search.decode(kaldi_decoder.DecodableCtc(np.ascontiguousarray(self.options["acweight"] * scores.T)))
        reached, lattice = search.get_best_path()
        if not reached:
            return Result([], "no path")
        _, _, labels, _ = kaldifst.get_linear_symbol_sequence(lattice)
        final = search.reached_final()
        return Result([self.words[label - 1] for label in labels], "" if final else "no final state")


if __name__ == "__main__":
    sys.exit(main())
