"""What `argonaut warmup` runs: the commands that compile kernels, on the toy system of toy_system.py."""

from collections.abc import Callable
from pathlib import Path

from recipes.warmup.toy_system import RATE, WORDS

Step = tuple[str, Callable[..., int], list[str]]  # title, function of a command line, its arguments

CONFIG = Path(__file__).parent / "config" / "networks.cntk"


def extraction(root: Path) -> Step:
    """The features of the toy system, which all tasks need."""
    return argonaut("hcopy", "-C", root / "hcopy.config", "-S", root / "hcopy.list", "-j", 1)


def search(root: Path) -> list[Step]:
    """Language models, graphs, decoding, alignment, lattices, bundles."""
    lm = root / "lm.arpa"
    two = root / "two.arpa"
    collection = root / "collection"
    collection.write_text(f"{lm} 0.5\n{two} 0.5\n")
    (root / "hotwords").write_text("AB\nBA C\n")
    tables = ("--state-list", root / "states.list", "--alignment", root / "states.mlf", "--dict", root / "dict")
    scoring = ("-cntkmap", root / "graph/cntkmap", "-acweight", 0.5)
    model = ("-am", root / "models/Dnn", *scoring)
    compiled = ("-graph", root / "graph/graph.dg")
    mlf = ("-outmlf", root / "words")
    graph = (*compiled, "-lm", lm)
    files = ("-infiles", root / "test.scp")
    audio = ("--features", root / "hcopy.config")
    lattices = ("--lattices", root / "lat.index")
    utterance = (root / "audio.scp").read_text().split()[0]
    bundle = root / "tones.argo"
    return [
        argonaut("lm", "estimate", "--text", root / "text", "--order", 3, "--method", "wb", "-o", lm),
        argonaut("lm", "estimate", "--text", root / "text", "--order", 2, "--method", "wb", "-o", two),
        argonaut("lm", "estimate", "--text", root / "text", "--order", 3, "--classes", 2, "-o", root / "classes.arpa"),
        argonaut("lm", "perplexity", "--lm", lm, "--text", root / "text"),
        argonaut("g2p", "train", root / "dict", "-o", root / "words.g2p", "--hold-out", 2),
        argonaut("g2p", "apply", root / "words.g2p", *WORDS),
        argonaut("graph", *tables, "--lm", lm, "--out", root / "graph"),
        argonaut("graph", *tables, "--lm-collection", collection, "--out", root / "mixed"),
        argonaut("graph", *tables, "--loop", "--out", root / "loop"),
        network(root, "Dnn", "SGD=[maxEpochs=10;learningRatesPerMB=1.6]"),
        argon(*graph, *model, *files, *mlf, "-lattice-prefix", root / "lat"),
        argon(*graph, *model, *files, *mlf, "-max-tokens", 1, "--widenings", 0),
        argon(*graph, *model, *files, *mlf, "--int8"),
        argon(*graph, *model, *files, *mlf, "--hotwords", root / "hotwords", "-lattice-prefix", root / "hot"),
        argon(*graph, *model, *audio, "-infiles", root / "audio.scp", *mlf, "--no-lm-lookahead"),
        argon("-graph", root / "mixed/graph.dg", "-lm-collection", collection, *model, *files, *mlf),
        argon("-graph", root / "loop/graph.dg", *model, *files, *mlf, "-lattice-prefix", root / "loops"),
        argon(*graph, *model, *audio, "--stream", utterance, "--json"),
        argon(*compiled, *model, *files, "-alignmlf", root / "words.mlf", "--dict", root / "dict", *mlf),
        network(root, "Write", f"modelPath={root}/models/Dnn"),
        argon(*graph, "--scores", root / "scores.scp", *scoring, *mlf),
        argonaut("lattice", "words", *lattices, "--by", "consensus", "--mlf", root / "consensus.mlf"),
        argonaut("lattice", "oracle", *lattices, "--reference", root / "words.mlf"),
        argonaut("lattice", "rescore", *lattices, "--lm", two, "--prefix", root / "rescored"),
        argonaut("score", "--text", root / "long.reference", root / "long.hypothesis"),
        argonaut(
            *("pack", "--model", root / "models/Dnn", "--graph", root / "graph/graph.dg", "--lm", lm, "--rate", RATE),
            *("--features", root / "hcopy.config", "--dict", root / "dict", "-o", bundle),
        ),
        argonaut("transcribe", bundle, utterance, "--format", "json", "--nbest", 2),
        argonaut("transcribe", bundle, utterance, "--format", "json", "--stream"),
        argonaut("transcribe", bundle, utterance, "--stream", "--hotwords", root / "hotwords"),
        argonaut(
            *("flatstart", "--features", root / "test.scp", "--words", root / "words.mlf", "--dict", root / "dict"),
            *("--out", root / "flat", "--gaussians", 1, "--first-passes", 5, "--method", "viterbi", "-j", 1),
        ),
        argonaut(
            *("fmllr", "train", "--features", root / "train.scp", "--alignment", root / "states.mlf", "--state-list"),
            *(root / "states.list", "--speakers", root / "speakers", "--dim", 2, "--splice", 0, "--gaussians", 1),
            *("--passes", 1, "--rounds", 1, "--min-frames", 1, "--out", root / "fmllr", "-j", 1),
        ),
        argonaut(
            *("ivector", "train", "--features", root / "test.scp", "-o", root / "speakers.ivector", "--gaussians", 2),
            *("--dim", 2, "--covariance", "full", "-j", 1),
        ),
        argonaut(
            *("ivector", "extract", root / "speakers.ivector", "--features", root / "test.scp", "--online", "-j", 1),
            *("--out", root / "ivectors", "--scp", root / "ivectors.scp"),
        ),
        ("a long stream", stream_with_pruning, [str(bundle), utterance]),
        ("a graph in memory", decode_with_graph_in_memory, [str(root)]),
        ("a long recording", align_long_recording, [str(bundle), utterance]),
        ("long lists of labels", index_labels, [str(root / "words.mlf")]),
    ]


def frames(root: Path) -> list[Step]:
    """Networks of frames without memory, update rules."""
    return [
        network(root, "Dnn", "command=Dnn:Test"),
        network(root, "Dnn", "numCPUThreads=2"),
        *(network(root, "Dnn", "SGD=[maxEpochs=1]", f"SGD=[{rule}]") for rule in RULES),
        network(root, "Images"),
        mapped(root, "Dnn", "Images"),
    ]


def sequences(root: Path) -> list[Step]:
    """Recurrent networks, natural gradient, networks of words."""
    return [
        network(root, "Recurrent"),
        network(root, "Recurrent", "numCPUThreads=2"),
        network(root, "Examples"),
        network(root, "NaturalGradient"),
        network(root, "NaturalGradient", "numCPUThreads=2"),
        mapped(root, "Recurrent", "NaturalGradient"),
        network(root, "Vocabulary"),
        *(
            network(root, words, "SGD=[maxEpochs=1]", f"SGD=[{rule}]")
            for words in ("ClassWords", "NoiseWords", "Words", "Sentences")
            for rule in ("gradUpdateType=None", "gradUpdateType=AdaGrad")
        ),
        ("criteria of lattices", compute_lattice_criterion, []),
        ("kernels of tables", compile_tables, []),
        ("lattice-free MMI", train_lattice_free, []),
        ("numerator graphs", compose_numerators, []),
        ("fonts of pictures", find_fonts, []),
    ]


RULES = (
    "L2RegWeight=0.001;L1RegWeight=0.0001;clippingThresholdPerSample=1;gaussianNoiseInjectStd=0.01",
    "gradUpdateType=AdaGrad",
    "gradUpdateType=AdaGrad;normWithAveMultiplier=false",
    "gradUpdateType=RmsProp",
    "gradUpdateType=RmsProp;normWithAveMultiplier=false",
    "gradUpdateType=FSAdaGrad",
    "gradUpdateType=AdamW",
)


def compile_tables(_: list[str]) -> int:
    """Compile the kernels that tables call."""
    from acoustic.kernels.compiled import elementwise, group, image, sequence, word  # noqa: F401 (register kernels)
    from acoustic.recurrence import step_kernels  # noqa: F401
    from acoustic.runtime.call_registry import FUNCTIONS, address_of
    from acoustic.training.natural_gradient import layer_kernels  # noqa: F401
    from acoustic.training.rules import compiled_loops  # noqa: F401

    for name in FUNCTIONS:
        address_of(name)
    return 0


def train_lattice_free(_: list[str]) -> int:
    """Compute the criteria of lattice-free MMI and their gradients, on a graph of one state."""
    import numpy as np

    from acoustic.engine.engine import Engine
    from acoustic.network.network import Network
    from readers.minibatches.sequence_layout import SequenceLayout
    from readers.minibatches.supervision import ChainSupervision, DenominatorGraph, NumeratorGraph, PlacedSupervision

    zeros = np.zeros(1, np.int32)
    ones = np.ones(1, np.float32)
    denominator = DenominatorGraph(1, 2, zeros, zeros, zeros, ones, np.ones(1))
    numerator = NumeratorGraph(1, zeros, zeros, zeros, 0 * ones, 0 * ones, 0 * ones)
    placed = PlacedSupervision(0, 0, 3, ChainSupervision("warmup", 3, numerator, denominator))
    layout = SequenceLayout.of_lengths([3])
    layout = SequenceLayout(1, 3, layout.starts, layout.ends, layout.gaps, supervisions=(placed,))
    for precision in ("float", "double"):
        network = Network(precision)
        network.add("Input", "x", rows=2)
        network.add("Parameter", "W", rows=2, cols=2, init="fixedValue", value=0)
        network.add("Times", "y", "W", "x")
        network.add(
            "Plus", "J", network.add("LFMMI", "chain", "y"), network.add("LFMMICrossEntropy", "cross", "y", "y")
        )
        engine = Engine(network, ["J"])
        engine.forward({"x": np.zeros((2, 3))}, training=True, criterion="J", layout=layout)
        engine.backward("J")
    return 0


def compose_numerators(_: list[str]) -> int:
    """Compose both kinds of numerators with a denominator graph of one state."""
    import numpy as np

    from readers.minibatches.supervision import DenominatorGraph
    from readers.sources.chain.composition import LogDenominator, compose_aligned, compose_transcript

    zeros = np.zeros(1, np.int32)
    graph = DenominatorGraph(1, 1, zeros, zeros, zeros, np.ones(1, np.float32), np.ones(1))
    compose_aligned((zeros, zeros, zeros, zeros), LogDenominator.of(graph), 0, 2)
    compose_transcript((np.array([0, 1]), zeros, zeros, np.ones(1, bool)), LogDenominator.of(graph))
    return 0


def compute_lattice_criterion(_: list[str]) -> int:
    """Compute value and gradient of SequenceWithSoftmax, in both precisions, for a lattice of one arc."""
    import numpy as np

    from acoustic.engine.engine import Engine
    from acoustic.network.network import Network
    from readers.minibatches.sequence_layout import SequenceLayout
    from readers.minibatches.supervision import LatticeSupervision, PlacedSupervision

    zero = np.zeros(1, np.int32)
    score = np.zeros(1, np.float32)
    no = np.zeros(1, bool)
    arc = (zero, zero + 1, zero, zero + 1, zero, zero, score, score, no)  # from node 0 to 1, a frame in senone 0
    placed = PlacedSupervision(0, 0, 1, LatticeSupervision("utterance", 1, zero, zero, 0.0, *arc, 2, no))
    layout = SequenceLayout(1, 1, ~no[None], ~no[None], no[None], supervisions=(placed,))
    for precision in ("float", "double"):
        network = Network(precision)
        network.add("Input", "labels", rows=2)
        network.add("Input", "x", rows=2)
        network.add("Parameter", "b", rows=2)
        network.add("SequenceWithSoftmax", "J", "labels", network.add("Plus", "z", "x", "b"), "z")
        engine = Engine(network, ["J"])
        matrix = np.eye(2, 1)
        for training in (False, True):
            engine.forward({"labels": matrix, "x": matrix}, training, layout=layout)
    return 0


def score_mapped(models: list[str]) -> int:
    """Score with models as they are in bundles, where parameters are mapped and cannot be written to."""
    import numpy as np

    from acoustic.scoring.scorer import AcousticScorer
    from readers.common.file_part import FilePart

    for path in map(Path, models):
        scorer = AcousticScorer(FilePart(path, 0, path.stat().st_size))
        scorer.score(np.zeros((scorer.dim, 10), np.float32))
    return 0


def stream_with_pruning(arguments: list[str]) -> int:
    """Recognise a stream as if it was long: the trace of its lattice is pruned."""
    from decoder import Recognizer
    from decoder.search import search_stream
    from readers.audio.audio_file import read_audio

    search_stream.PRUNE_BEYOND = 0  # this process recognises nothing else
    bundle, audio = arguments
    samples, rate = read_audio(audio)
    recognizer = Recognizer.load(bundle)
    for variant in (recognizer, recognizer.with_grammar(list(WORDS))):  # the graph of a grammar is in memory
        stream = variant.stream(rate)
        stream.push(samples / 32768)
        stream.finish()
    return 0


def index_labels(paths: list[str]) -> int:
    """Read label files as if they were large."""
    from readers.htk import mlf

    mlf.LARGE = -1  # this process reads nothing else
    for path in paths:
        mlf.read_mlf(path)
    return 0


def decode_with_graph_in_memory(directory: list[str]) -> int:
    """Decode with a graph that was not read from a file, whose look-ahead can be written to."""
    from decoder.graph.compiled_graph import precompile
    from decoder.lm.mapped_model import open_language_model
    from decoder.search.decoder import Decoder
    from readers.htk.parameter_file import read_htk
    from readers.language.att import read_acceptor
    from readers.tables.hmm_tables import read_cntkmap, read_lookahead, read_transitions

    root = Path(directory[0])
    tables = root / "graph"
    acceptor = read_acceptor(tables / "graph.fsa.gz")
    graph = precompile(acceptor, read_transitions(tables / "transitions"), read_lookahead(tables / "lookahead"))
    decoder = Decoder(graph, open_language_model(root / "lm.arpa", print), cntkmap=read_cntkmap(tables / "cntkmap"))
    decoder.decode(read_htk((root / "scores.scp").read_text().split()[0]).frames)
    return 0


def align_long_recording(arguments: list[str]) -> int:
    """Align a recording with a transcript as if both were long."""
    from decoder.recognizer.forced_aligner import ForcedAligner
    from decoder.scoring import matching

    matching.MOST_PAIRS = 0  # this process matches nothing else
    bundle, audio = arguments
    ForcedAligner.load(bundle).align_long(audio, list(WORDS))
    return 0


def find_fonts(_: list[str]) -> int:
    """Let matplotlib search the fonts, which it does once for each user."""
    import matplotlib.font_manager  # noqa: F401

    return 0


def mapped(root: Path, *networks: str) -> Step:
    return "scoring with mapped models", score_mapped, [str(root / "models" / name) for name in networks]


def network(root: Path, command: str, *settings: str) -> Step:
    from recipes.cli.cntk import run

    arguments = [f"configFile={CONFIG}", f"Dir={root}", f"Network={command}", f"command={command}", *settings]
    return f"cntk {command}", run, arguments


def argon(*arguments: object) -> Step:
    from recipes.cli.argon.command import run

    return "argon", run, [*map(str, arguments), "--threads", "1"]


def argonaut(*arguments: object) -> Step:
    from recipes.cli.main import run

    return f"argonaut {arguments[0]}", run, [*map(str, arguments)]
