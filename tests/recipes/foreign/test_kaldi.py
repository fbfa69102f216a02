"""Models of vosk and Kaldi as bundles: scores and i-vectors equal to plain computations of the same files."""

import numpy as np
import pytest

from decoder.recognizer import Recognizer
from features import FeatureConfig, extract
from readers.config.feature_record import FeatureRecord
from readers.errors import ArgonautError, ConfigError
from readers.kaldi.feature_options import read_feature_options
from readers.kaldi.ivectors import read_gaussian_mixture, read_ivector_extractor
from readers.kaldi.nnet3.nnet import read_nnet_model
from recipes.foreign.kaldi import search_options
from recipes.foreign.kaldi_ivectors import ivector_model
from recipes.foreign.kaldi_models import features_of
from recipes.packing import PackOptions, make_bundle
from tests.acoustic.descriptions.kaldi_twin import evaluate
from tests.decoder.graph.foreign.test_kaldi_graph import FINALS, GRAPH
from tests.readers.kaldi.fst_files import ngram_file, vector_file
from tests.readers.kaldi.layers import lstm_network
from tests.readers.kaldi.models import Writer, put_model, put_tree
from tests.readers.kaldi.test_fst import HISTORIES
from tests.readers.kaldi.test_ivectors import extractor, mixture

RNG = np.random.default_rng(5)
LEFT, RIGHT = 2, 1
LDA = RNG.normal(size=(3, 3 * (LEFT + 1 + RIGHT) + 1))  # with an offset
STATISTICS = np.array([[30.0, -4.0, 2.0, 20.0], [0.0, 0.0, 0.0, 0.0]])
PROJECTIONS = RNG.normal(size=(2, 3, 2))
AUDIO = RNG.normal(0, 1000, 4000).astype("i2")  # of 8 kHz: 48 frames


@pytest.fixture
def directory(tmp_path):
    root = tmp_path / "small"
    for name in ("am", "conf", "graph", "ivector", "rescore"):
        (root / name).mkdir(parents=True)
    (root / "am" / "final.mdl").write_bytes(put_model(Writer(True)).content)
    (root / "conf" / "mfcc.conf").write_text(
        "--use-energy=false\n--sample-frequency=8000\n--num-ceps=3\n--num-mel-bins=8\n--high-freq=-400\n"
    )
    (root / "conf" / "model.conf").write_text(
        "--beam=12\n--max-active=500\n--frame-subsampling-factor=3\n--endpoint.silence-phones=3:9\n"
    )
    (root / "graph" / "HCLr.fst").write_bytes(vector_file(FINALS, GRAPH))
    (root / "graph" / "Gr.fst").write_bytes(ngram_file(HISTORIES, {0: "<eps>", 1: "a", 2: "b", 3: "#0"}, (0,)))
    (root / "graph" / "phones.txt").write_text("<eps> 0\nx 1\ny 2\nSIL 3\n")
    (root / "ivector" / "final.dubm").write_bytes(mixture(True))
    (root / "ivector" / "final.ie").write_bytes(extractor(True, projections=PROJECTIONS))
    (root / "ivector" / "final.mat").write_bytes(Writer(True).matrix(LDA).content)
    (root / "ivector" / "global_cmvn.stats").write_bytes(Writer(False).matrix(STATISTICS, "f8").content)
    (root / "ivector" / "splice.conf").write_text(f"--left-context={LEFT}\n--right-context={RIGHT}\n")
    return root


class Statistics:
    """Kaldi's sums for the i-vectors of frames (T, 3), in Kaldi's order, by their formulas."""

    def __init__(self, root, frames):
        self.frames = frames
        self.gaussians = read_gaussian_mixture(root / "ivector" / "final.dubm")
        self.model = read_ivector_extractor(root / "ivector" / "final.ie")
        mean = STATISTICS[0, :3] / STATISTICS[0, 3]
        sums = np.cumsum(frames, axis=0)
        self.centred = [frame - (sums[t] + 200 * mean) / (t + 1 + 200) for t, frame in enumerate(frames)]
        self.linear = np.zeros(2)
        self.quadratic = np.zeros((2, 2))

    def projected(self, rows, t):
        places = np.clip(np.arange(t - LEFT, t + RIGHT + 1), 0, len(rows) - 1)
        return LDA[:, :-1] @ np.concatenate([rows[place] for place in places]) + LDA[:, -1]

    def add(self, t, weight=1.0):
        """Add a frame, or take some of it away."""
        values = self.projected(self.centred, t)
        scores = [
            np.log(share) - 0.5 * (np.log(2 * np.pi * variance) + (values - mu) ** 2 / variance).sum()
            for share, mu, variance in zip(self.gaussians.weights, self.gaussians.means, self.gaussians.variances)
        ]
        shares = np.exp(scores - np.max(scores))
        shares /= shares.sum()
        shares[(shares < min(0.025 / abs(weight), 0.99)) & (shares < shares.max())] = 0
        shares *= 0.1 * weight / shares.sum()
        for share, matrix, inverse in zip(shares, self.model.projections, self.model.inverse_covariances):
            self.linear += share * matrix.T @ inverse @ self.projected(self.frames, t)
            self.quadratic += share * matrix.T @ inverse @ matrix

    def vector(self):
        offset = np.array([self.model.offset, 0])
        return np.linalg.solve(self.quadratic + np.eye(2), self.linear + offset) - offset


def online_ivectors(root, frames, period=10):
    """Kaldi's i-vectors of a training, one in each period of frames."""
    statistics = Statistics(root, frames)
    vectors = []
    for t in range(len(frames)):
        statistics.add(t)
        if t % period == 0:
            vectors.append(statistics.vector())
    return np.array(vectors)


def chunk_ivectors(root, frames, arrivals, heard, ahead):
    """vosk's i-vectors of frames.

    arrivals: (frames, those that count, whether it is the end) of each block; heard: which columns are silence by then.
    """
    statistics = Statistics(root, frames)
    weights = np.zeros(len(frames) + 3)
    vectors = []
    for (num_frames, num_usable, is_end), silent in zip(arrivals, heard):
        of_columns = [0.001 if silence else 1.0 for silence in silent] or [0.001]
        of_columns += [of_columns[-1]] * (len(frames) - len(silent))
        num_chunks = -(-len(frames) // 24) if is_end else max(0, num_frames - ahead) // 24
        if num_chunks > len(vectors):
            for t in range(num_usable):
                change = of_columns[t // 3] - weights[t]
                if change:
                    statistics.add(t, change)
                weights[t] = of_columns[t // 3]
            vectors += [statistics.vector()] * (num_chunks - len(vectors))
    # The time of an i-vector is the beginning of a chunk; the first chunk takes those of all frames that it looks at.
    times = [t - t % 24 for t in range(len(frames))]
    first = max(time for time in range(0, len(frames) + 24, 24) if time < 24 + ahead)
    return np.array([vectors[min(max(0, (time - first) // 24), len(vectors) - 1)] for time in times])


@pytest.mark.slow
def test_a_packed_model_recognises_with_the_scores_of_its_files(tmp_path, directory):
    lines = []
    bundle = make_bundle(PackOptions(experiment=directory, output=tmp_path / "small.argo"), lines.append)
    boundaries = directory / "graph" / "phones" / "word_boundary.int"
    assert lines == [
        f"{directory / 'rescore'}: left out; words are recognised by the graph alone",
        f"{boundaries}: missing; a word ends with the phone after its label in the graph",
        f"{directory / 'am' / 'tree'}: missing; the bundle recognises, but cannot align",
    ]
    recognizer = Recognizer.load(bundle.path)
    config = FeatureConfig.from_hcopy(bundle.description.hcopy)
    frames = np.roll(extract(AUDIO, config, 8000), 1, axis=0).T  # c0 comes first in Kaldi
    features = recognizer.front_end.features(AUDIO, 8000)
    np.testing.assert_allclose(features[3:, ::10].T, online_ivectors(directory, frames.astype(float)), atol=2e-4)
    stream = recognizer.front_end.feature_stream(8000, None)
    pushed = [stream.push(AUDIO[:1234]), stream.push(AUDIO[1234:]), stream.finish()]
    np.testing.assert_allclose(np.concatenate(pushed, axis=1), features, atol=1e-4)
    model = read_nnet_model(directory / "am" / "final.mdl")
    short = AUDIO[: 200 + 8 * 80]  # one i-vector serves its 9 frames
    short_features = recognizer.front_end.features(short, 8000)
    assert short_features.shape[1] == 9
    expected = evaluate(model.nnet, frames[:9].T, short_features[3:, 0], model.context, 3)
    np.testing.assert_allclose(recognizer.front_end.score(short, 8000), expected, atol=1e-4)
    transcript = recognizer.transcribe(AUDIO, 8000)
    assert transcript.text
    assert set(transcript.text.split()) <= {"a", "b"}
    assert recognizer.decoder.options.beam == 12
    assert recognizer.decoder.options.silence == ("SIL",)


@pytest.mark.slow
def test_ivectors_follow_the_search_as_in_vosk(tmp_path, directory):
    audio = RNG.normal(0, 1000, 12_000).astype("i2")  # 148 frames, in blocks of 20
    bundle = make_bundle(PackOptions(experiment=directory, output=tmp_path / "small.argo"))
    recognizer = Recognizer.load(bundle.path)
    front_end = recognizer.front_end
    context = read_nnet_model(directory / "am" / "final.mdl").context[1]
    stream, scoring = front_end.stages(8000, None, front_end.block(10))
    num_frames = [*range(18, 140, 20), 148]
    arrivals = [*((count, count - RIGHT, False) for count in num_frames), (148, 148, True)]
    heard = [RNG.random(7 * max(0, block - 1)) < 0.5 for block in range(9)]
    pushed = []
    for samples, silent in zip([*stream.pieces(audio), stream.rest()], heard):
        stream.hear(silent, 0)
        pushed.append(stream.push(samples))
    stream.hear(heard[-1], 0)
    features = np.concatenate([*pushed, stream.finish()], axis=1)
    frames = np.roll(features[:3], 1, axis=0).T
    np.testing.assert_allclose(features[:3], extract(audio, front_end.config, 8000), atol=1e-3)
    expected = chunk_ivectors(directory, frames.astype(float), arrivals, heard, context)
    np.testing.assert_allclose(features[3:].T, expected, atol=2e-4)
    assert len(np.unique(features[3:], axis=1).T) >= 6
    np.testing.assert_allclose(scoring.push(features), front_end.scorer.score(features)[:, :48], atol=1e-4)

    scores, result = front_end.search(audio, 8000, recognizer.decoder)
    assert scores.shape[1] == result.num_frames == 50
    assert result.text == recognizer.decoder.decode(scores).text == recognizer.transcribe(audio, 8000).text.split()
    live = recognizer.stream(8000, endpoint=None)
    events = [event for part in np.array_split(audio, 7) for event in live.push(part)] + live.finish()
    assert events[-1].is_final
    assert events[-1].text == " ".join(result.text)


@pytest.mark.slow
def test_a_model_with_tree_and_lexicon_aligns_and_learns_words(tmp_path, directory):
    root = (0, [None, *[(-1, [2 * phone, 2 * phone + 1]) for phone in range(3)]])  # self-loops have their own pdfs
    (directory / "am" / "tree").write_bytes(put_tree(Writer(True), 1, 0, root).content)
    (directory / "lexicon.txt").write_text("a x\n")
    (directory / "graph" / "phones").mkdir()
    (directory / "graph" / "phones" / "optional_silence.txt").write_text("SIL\n")
    bundle = make_bundle(PackOptions(experiment=directory, output=tmp_path / "small.argo"))
    recognizer = Recognizer.load(bundle.path).with_words({"c": "x y"})
    assert recognizer.decoder.graph.words[-1] == "c"
    assert recognizer.notes[1] == "words without a pronunciation, which the new graph lacks: b"
    aligned = recognizer.align(AUDIO, "a c a", 8000)
    assert [phone.text for phone in aligned.phones if phone.text != "SIL"] == ["x", "x", "y", "x"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("conf/mfcc.conf", "--use-energy=yes\n", r"mfcc\.conf: use-energy is 'yes'; expected true or false"),
        ("conf/mfcc.conf", "--energy-floor=1\n", r"mfcc\.conf: energy-floor is 1; expected 0"),
        ("conf/mfcc.conf", "--snip-edges=0\n--use-energy=false\n", r"snip-edges is '0'; expected true or false"),
        ("conf/mfcc.conf", "--use-energy=false\n--low-freq=x\n", r"low-freq is 'x'; expected a number"),
        ("conf/mfcc.conf", "--use-energy=false\n--lowfreq=20\n", r"lowfreq is not supported; expected one of"),
        ("conf/mfcc.conf", None, r"conf: none of mfcc\.conf, .*; expected the configuration of the features"),
        ("conf/mfcc.conf", "--num-ceps=2.5\n", r"num-ceps is 2\.5; expected a whole number above 0"),
        ("conf/mfcc.conf", "--num-ceps=4\n", r"mfcc\.conf: frames of 4 values; expected 3, as the network takes"),
        ("conf/mfcc.conf", "--low-freq=9000\n", r"filters from 9000 to 8000 Hz; expected a range within 0 to 8000 Hz"),
        ("conf/mfcc.conf", "--high-freq=9000\n", r"filters from 20 to 9000 Hz; expected"),
        ("conf/mfcc.conf", "--num-ceps=3\n--num-mel-bins=1\n", r"mfcc\.conf: .*NUMCEPS = 2; expected"),
        ("conf/model.conf", "--beam=wide\n", r"model\.conf: beam is 'wide'; expected a number"),
        ("conf/model.conf", "--beam=nan\n", r"model\.conf: beam is 'nan'; expected a number"),
        ("conf/model.conf", "--acoustic-scale=-1\n", r"acoustic-scale is -1; expected a number above 0"),
        ("conf/model.conf", "--max-active=1_0\n", r"max-active is '1_0'; expected a number"),
        (
            "conf/model.conf",
            f"--endpoint.silence-phones={'9' * 5000}\n",
            r"silence phones '\d{40}'; expected numbers with",
        ),
        ("graph/HCLr.fst", None, r"graph: neither HCLG\.fst nor HCLr\.fst; expected the graph of the model"),
        ("graph/phones.txt", "<eps> 0\nx 1\n", r"HCLr\.fst: phone 2 of the model has no name"),
        ("am/cmvn_opts", "--norm-means=true\n", r"cmvn_opts: norm-means is true; expected false, beside i-vectors"),
        ("ivector/splice.conf", "--left-context=9\n", r"ivector: final\.mat of \(3, 13\).*; expected sizes that fit"),
        ("am/online_cmvn", "", r"am/online_cmvn: features without their sliding mean; expected plain features"),
        ("am/global_cmvn.stats", "", r"am/global_cmvn\.stats: features without their sliding mean; expected plain"),
        ("ivector/online_cmvn_iextractor", "", r"an extractor of normalised frames; expected one of plain frames"),
        ("ivector/online_cmvn.conf", "--norm-vars=true\n", r"online_cmvn\.conf: norm-vars is 'true'; expected 'false'"),
        ("ivector/online_cmvn.conf", "--cmn-window=0\n", r"online_cmvn\.conf: cmn-window is 0; expected at least 1"),
        ("conf/ivector.conf", "--ivector-period=0\n", r"conf/ivector\.conf: period is 0; expected 1 to 100000"),
        ("ivector/global_cmvn.stats", "[ 1 1 1 0 ]", r"global_cmvn\.stats: 0 frames; expected at least one"),
        ("ivector/splice.conf", "--left-context=-1\n", r"left-context is '-1'; expected a number from 0 to 10000"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, directory, name, content, message):
    (directory / name).unlink(missing_ok=True)
    if content is not None:
        (directory / name).write_text(content)
    with pytest.raises((ArgonautError, OSError), match=message):
        make_bundle(PackOptions(experiment=directory, output=tmp_path / "small.argo"))
    assert not (tmp_path / "small.argo").exists()


@pytest.mark.parametrize("place", ["ivector/splice.conf", "ivector/splice_opts", "conf/splice.conf"])
def test_options_of_i_vectors_are_found_where_kaldi_writes_them(directory, place):
    (directory / "ivector" / "splice.conf").rename(directory / place)
    (directory / "conf" / "online_cmvn.conf").write_text("# for apply-cmvn-online\n--cmn-window=300\n")
    (directory / "conf" / "ivector_extractor.conf").write_text("--splice-config=x\n--max-count=75\n--num-gselect=3\n")
    about = read_feature_options(directory / "conf" / "mfcc.conf", "mfcc")
    model = ivector_model(directory / "ivector", about, FeatureRecord())
    projection, mean = model.background.projection, model.background.mean
    assert (projection.left, projection.right, mean.window, mean.prior) == (LEFT, RIGHT, 300, 200)
    assert (model.options.max_count, model.options.select, model.options.period) == (75.0, 3, 10)


def test_an_extractor_is_left_out_of_a_network_without_i_vectors(tmp_path, directory):
    lines, components, context = lstm_network(1)
    content = put_model(Writer(True), lines=lines, components=components, context=context).content
    (directory / "am" / "final.mdl").write_bytes(content)
    (directory / "conf" / "model.conf").unlink()
    (directory / "graph" / "word_boundary.int").write_text("1 singleton\n2 singleton\n3 nonword\n")
    lines = []
    bundle = make_bundle(PackOptions(experiment=directory, output=tmp_path / "small.argo"), lines.append)
    assert lines[1:] == [
        f"{directory / 'ivector'}: left out; the model takes no i-vectors",
        f"{directory / 'am' / 'final.mdl'}: no frame_subsampling_factor: every frame is scored; most models without "
        "priors have 3",
        f"{directory / 'am' / 'tree'}: missing; the bundle recognises, but cannot align",
    ]
    assert "ivectors.safetensors" not in bundle.parts


def test_of_several_configurations_that_of_the_network_is_taken(directory):
    other = directory / "conf" / "mfcc.conf"
    fitting = other.rename(directory / "conf" / "mfcc_hires.conf")
    other.write_text("--use-energy=false\n")
    nnet = read_nnet_model(directory / "am" / "final.mdl")
    path, about = features_of(nnet, [(other, "mfcc"), (fitting, "mfcc")])
    assert (path, about.num_values) == (fitting, 3)
    with pytest.raises(ConfigError, match=r"mfcc\.conf: frames of 13 values; expected 3, as the network takes"):
        features_of(nnet, [(other, "mfcc")])
    assert features_of(None, [(other, "mfcc"), (fitting, "mfcc")])[0] == other


def test_search_options_of_a_directory_without_them_are_those_of_kaldi(tmp_path):
    options = search_options(tmp_path)
    assert (options["beam"], options["max_tokens"], options["acweight"]) == (16.0, 42000, 1.0)
    assert options["lookahead_sums"] is True
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "model.conf").write_text(f"--max-active={2**31 - 1}\n")
    assert search_options(tmp_path)["max_tokens"] == 2**31 - 1
