"""`argonaut info`: files are told by their content and described; a bad file does not take the others with it."""

import gzip
import json

import kaldiio
import numpy as np
import pytest

from decoder.graph.compiled_graph import precompile
from decoder.graph.graph_file import save_graph
from readers.audio.audio_file import write_sphere
from readers.errors import FormatError, ModelError
from readers.htk.parameter_file import parse_kind, write_htk
from readers.htk.slf import write_slf
from readers.kaldi.ark import write_matrix
from readers.language.att import read_acceptor
from readers.minibatches.base import Minibatch
from readers.results.lattice import Lattice
from readers.sources.examples.example_writer import write_examples
from readers.sources.records.record_cache import CachedSource, CachedStream, write_cache
from readers.tables.tensor_file import save_tensors
from recipes.cli.main import main
from recipes.file_kinds import describe_file
from tests.readers.tables.sphinx import ngram_files


def put(path, text):
    path.write_text(text)
    return path


def figures_of(path, verbose=0):
    kind, figures = describe_file(str(path), verbose)
    return kind, {name: str(value) for name, value in figures}


ARPA = "\\data\\\nngram 1=2\n\\1-grams:\n-1 <s>\n-1 a\n\\end\\\n"


@pytest.mark.parametrize("content", [ngram_files.trie(), ngram_files.dump(), ngram_files.dump(order=">")])
def test_binary_ngram_models_of_sphinx(content, tmp_path):
    (tmp_path / "lm").write_bytes(content)
    kind, figures = figures_of(tmp_path / "lm")
    assert kind == "n-gram model of CMU Sphinx"
    assert figures == {"order": "3", "1-grams": "5", "2-grams": "5", "3-grams": "4", "marks": "<s> </s>"}
    (tmp_path / "lm").write_bytes(content[:-3])
    with pytest.raises(FormatError, match="lm: "):
        describe_file(tmp_path / "lm")


TEXTS = {
    "master label file": ('#!MLF!#\n"*/a.lab"\n0 200000 x -1.5 y\n.\n"p?.lab"\n.\n', {"entries": "1 and 1 patterns"}),
    "ARPA language model": (ARPA, {"order": "1", "1-grams": "2", "marks": "<s>"}),
    "SLF lattice": ("N=2 L=1\nI=0\nI=1\nJ=0 S=0 E=1 W=A\n", {"links": "1", "words": "1 different"}),
    "HMM state transitions": ("[a_s2] -0.6931 -0.6932\n", {"states": "1", "duration": "2.0 to 2.0 frames expected"}),
    "silence of a decoding graph": ("sil any-order\n", {"model": "sil", "topology": "any-order"}),
    "states tied to senones": ("[sp_s2] [sil_s3]\n", {"states": "1", "senones": "1"}),
    "HTK model definitions (MMF)": (
        "~o <VECSIZE> 1<MFCC>\n~s 'x' <MEAN> 1 0 <VARIANCE> 1 1\n~h 'sp' <BEGINHMM><NUMSTATES> 3 <STATE> 2 ~s 'x'\n"
        "<TRANSP> 3 0 0.5 0.5 0 0.5 0.5 0 0 0 <ENDHMM>\n",
        {"models": "1", "shared": "1 state", "frames": "1, MFCC", "T-models": "sp"},
    ),
    "decision trees or script of HHEd": (
        "QS 'L' { 'a-*' }\nb[2] { 0 'L' \"b_1\" \"b_2\" }\nb[3]\n\"b_3\"\n",
        {"questions": "1", "trees": "2 of 1 phones", "leaves": "3 tied states"},
    ),
    "map of graph states to network outputs": ("[a_s2] 0\n[a_s3] 7\n", {"outputs": "0 to 7"}),
    "acceptor in AT&T text (a decoding graph)": (
        "0 1 [a_s2] 0.5\n1 2 A\n2 0 <eps>\n2\n",
        {"arcs": "3, 1 of them epsilon", "labels": "1 HMM state and 1 word"},
    ),
    "transcripts": ("HELLO WORLD (u1)\n(u2)\n", {"utterances": "2", "words": "2, 2 different"}),
    "script file (SCP)": (
        "u1.x=/none/a.mfc[0,9]\nu2.x=/none/a.mfc[10,19]\n",
        {"ranges": "2 entries give one, 20 frames"},
    ),
    "list of names": ("aa\nbb\naa\n", {"names": "3, 2 different"}),
    "HCopy configuration": (
        "# filterbank\nHPARM: TARGETKIND = FBANK_D\nNUMCHANS = 24\nSAVEWITHCRC = F\n",
        {"settings": "3", "TARGETKIND": "FBANK_D", "NUMCHANS": "24"},
    ),
    "cntk configuration": (
        "# top\ncommand=Train:Test\nprecision=float\nTrain=[\n action=train\n modelPath=$Dir$/m\n SGD=[a=1]\n]\n"
        "Test=[action=test:write]\nMore=[b=2]\n",
        {
            "commands": "Train Test",
            "Train": "action train, modelPath $Dir$/m, SGD",
            "Test": "action test write",
            "blocks": "More",
        },
    ),
    "network description (NDL)": (
        "load=ndlMacros\nrun=Net\nNet=[\n x=Input(3)\n w=Parameter(2, 3)\n y=Times(w, x)\n]\n",
        {"sections": "Net"},
    ),
    "model editing script (MEL)": (
        'm=LoadModel("a.dnn", format=cntk)\nSetDefaultModel(m)\nRemove(m.L1)\nremove(m.L2)\nSaveModel(m, "b.dnn")\n',
        {"commands": "1 LoadModel, 1 SetDefaultModel, 1 Remove, 1 remove, 1 SaveModel"},
    ),
    "Kaldi script file (scp)": (
        "u1 /none/a.ark:3\nu2 /none/a.ark:99[0:5]\n",
        {"entries": "2", "archives": "1, 1 of them not there", "first key": "u1"},
    ),
    "Kaldi archive of alignments, as text": (
        "u1 0 0 4 4\nu2 1\n",
        {"entries": "2", "frames": "5", "classes": "3 different"},
    ),
    "records as text (UCI)": ("0.5 1 -2 cat\n1.5 2e1 0 dog\n", {"records": "2", "columns": "4"}),
    "history of a training": (
        '{"epoch": 1, "training": {"CE": 2.5, "Err": 0.75}}\n{"epoch": 2, "training": {"CE": 1.5, "Err": 0.25}}\n',
        {"epochs": "2, the last is 2", "training": "CE 1.5, Err 0.25"},
    ),
    "report of a run": (
        "# utterances: 2 done, 1 skipped, 0 failed\nu3\tskipped\tu3.fb: No such file or directory\n",
        {"utterances": "2 done, 1 skipped, 0 failed"},
    ),
    "acceptor in AT&T text": ("0 1 A 0.5\n1\n", {"arcs": "1, 0 of them epsilon", "labels": "0 HMM states and 1 word"}),
    "HMM list": ("sil\na-b+c a-d+e\na-d+e\n", {"logical": "3", "physical": "2"}),
    "mixture of language models": ("lm/a.arpa 0.25\nlm/b.arpa 0.75\n", {"numbers": "0.25 to 0.75"}),
    "names with a number each": ("u1 12.5\nu2 7\n", {"names": "2, 2 different", "numbers": "7 to 12.5"}),
    "JSON": ('{"a": [1, 2]}\n', {"a": "[1, 2]"}),
    "records in JSON, one per line": ('{"type": "final"}\n{"type": "end", "frames": 3}\n', {"records": "2"}),
    "picture (Graphviz)": ("strict digraph {\na -> b;\n}\n", {}),
    "pronunciation dictionary": ("A 0.5 ey\nA ah\n!NULL []\n", {"phones": "2: ah ey", "output": "given for 1"}),
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("compress", [False, True])
def test_text_files_are_told_by_content(tmp_path, kind, compress):
    text, expected = TEXTS[kind]
    (tmp_path / "f").write_bytes(gzip.compress(text.encode()) if compress else text.encode())
    found, figures = figures_of(tmp_path / "f")
    assert found == kind
    assert {name: figures.get(name) for name in expected} == expected


def test_cmudict_is_a_dictionary(tmp_path):
    kind, figures = figures_of(put(tmp_path / "d", ";;;\n'BOUT  B AW1 T\nA  AH0\nA(1)  EY1\n"))
    assert (kind, figures["entries"]) == ("pronunciation dictionary", "3 pronunciations")
    assert figures["words"].startswith("2, 1 of them")
    (tmp_path / "d").write_bytes(";;; old\nD\xc9J\xc0  D EY2\n".encode("latin-1"))
    assert figures_of(tmp_path / "d")[0] == "pronunciation dictionary"
    kind, figures = figures_of(put(tmp_path / "d", "'em AH M\nminus M AY N\nminus(2) M AY N AH S\n"))
    assert (kind, figures["entries"]) == ("pronunciation dictionary", "3 pronunciations")


def test_timit_labels_are_told_by_their_name(tmp_path):
    kind, figures = figures_of(put(tmp_path / "a.PHN", "0 100 h#\n100 250 sh\n"))
    assert (kind, figures["segments"], figures["ends at"]) == ("TIMIT label file", "2", "sample 250")


def test_features_and_their_checksum(tmp_path):
    path = tmp_path / "a.fb"
    write_htk(path, np.arange(6.0).reshape(2, 3), parse_kind("FBANK_K"))
    kind, figures = figures_of(path)
    assert kind == "HTK parameter file"
    assert figures["kind"] == "FBANK_K"
    assert figures["frames"] == "3 (0.03 s, one every 10 ms)"
    assert figures["range"] == "0 to 5, mean 2.5"
    assert figures["checksum"] == "agrees with the data"
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    path.write_bytes(raw)
    assert figures_of(path)[1]["checksum"].startswith("DOES NOT AGREE: checksum ")


def test_compressed_features_and_values_that_are_no_numbers(tmp_path):
    write_htk(tmp_path / "a", np.arange(6.0).reshape(2, 3), parse_kind("MFCC_C"))
    assert figures_of(tmp_path / "a")[1]["values"] == "2 per frame, compressed to 16 bits"
    write_htk(tmp_path / "b", np.array([[np.nan, 1.0]]), parse_kind("USER"), byte_order="<")
    figures = figures_of(tmp_path / "b")[1]
    assert figures["byte order"] == "little-endian"
    assert figures["note"] == "some values are infinite or not numbers"


@pytest.mark.parametrize("container", ["sphere", "htk"])
def test_audio(tmp_path, container):
    samples = np.array([1.0, -5.0] * 8000)
    if container == "sphere":
        write_sphere(tmp_path / "a", samples, 16000)
    else:
        write_htk(tmp_path / "a", samples[None], 0, 625)
    kind, figures = figures_of(tmp_path / "a")
    assert kind == "audio"
    assert figures.pop("format") == ("NIST SPHERE" if container == "sphere" else "HTK waveform")
    assert figures == {"samples": "16000 (1.00 s)", "rate": "16000 Hz", "range": "-5 to 1 of 16 bits"}


def test_an_scp_whose_files_are_there(tmp_path):
    write_htk(tmp_path / "a.fb", np.zeros((24, 5)), parse_kind("FBANK"))
    figures = figures_of(put(tmp_path / "l.scp", f"{tmp_path}/a.fb\n{tmp_path}/a.fb\n{tmp_path}/b.fb\n"))[1]
    assert figures["files"] == "2, 1 of them not there"
    assert figures["repeated"] == "1 keys come more than once"
    assert figures["first file"] == "FBANK, 24 values per frame"


def test_a_model_and_its_tensors(tmp_path):
    from safetensors.numpy import save_file

    tensors = {"W": np.zeros((3, 4), np.float32), "b": np.zeros(3, np.float32)}
    graph = (
        '{"format": "argonaut-network", "version": 1, "precision": "float", "features": ["features"],'
        ' "nodes": [{"name": "W", "type": "LearnableParameter"}, {"name": "b", "type": "LearnableParameter"}]}'
    )
    save_file(tensors, tmp_path / "m", metadata={"argonaut": graph})
    kind, figures = figures_of(tmp_path / "m")
    assert kind == "safetensors model"
    assert figures == {
        "tensors": "2, 15 values, 2 F32",
        "format": "argonaut-network 1",
        "nodes": "2: 2 LearnableParameter",
        "precision": "float",
        "features": "features",
    }
    assert figures_of(tmp_path / "m", verbose=1)[1]["W"] == "3 x 4"
    save_file(tensors, tmp_path / "plain")
    assert figures_of(tmp_path / "plain")[1]["network"] == "none: tensors only"


def test_a_checkpoint_tells_where_training_stands(tmp_path):
    state = {"format": "argonaut-checkpoint", "version": 2, "epoch": 3, "total_samples": 4096, "state": {}}
    save_tensors(tmp_path / "m.ckp", {"momentum/W": np.zeros((3, 4), np.float32)}, state)
    kind, figures = figures_of(tmp_path / "m.ckp")
    assert kind == "checkpoint of a training"
    assert (figures["epoch"], figures["total samples"]) == ("3", "4096")
    assert figures["format"] == "argonaut-checkpoint 2"


@pytest.mark.parametrize("text", [False, True])
def test_kaldi_archives_of_features(tmp_path, text):
    with (tmp_path / "a.ark").open("wb") as file:
        for key, frames in (("u1", 3), ("u2", 4)):
            write_matrix(file, key, np.ones((frames, 2), np.float32), text)
    kind, figures = figures_of(tmp_path / "a.ark")
    assert kind == "Kaldi archive of features" + (", as text" if text else "")
    assert figures["entries"] == "2"
    assert figures["frames"] == "7"
    assert figures["values"] == "2 per frame"
    assert figures["stored as"] == ("2 text" if text else "2 FM")


def test_kaldi_archives_of_alignments(tmp_path):
    kaldiio.save_ark(str(tmp_path / "a.ark"), {"u1": np.array([3, 3, 5], np.int32)})
    kind, figures = figures_of(tmp_path / "a.ark")
    assert kind == "Kaldi archive of alignments"
    assert (figures["frames"], figures["classes"]) == ("3", "2 different")


def test_record_caches(tmp_path):
    streams = [CachedStream("features", 0, 1, 2), CachedStream("labels", 0, 0, 1, 3)]
    block = {"features": np.ones((4, 2), np.float32), "labels": np.zeros(4, np.int32)}
    (tmp_path / "a.txt").write_text("x")
    write_cache(tmp_path / "c", [block], streams, [CachedSource.of(tmp_path / "a.txt")], {})
    kind, figures = figures_of(tmp_path / "c")
    assert kind == "record cache of a reader"
    assert (figures["records"], figures["features"], figures["labels"]) == ("4", "2 numbers", "a class of 3")


def test_archives_of_examples(tmp_path):
    features, classes = np.ones((2, 30), np.float32, order="F"), np.zeros(30, int)
    labels = np.zeros((3, 30), np.float32, order="F")
    labels[0] = 1
    minibatch = Minibatch({"features": features, "labels": labels}, {"labels": classes}, 30)
    write_examples(tmp_path / "e", [minibatch], 30)
    kind, figures = figures_of(tmp_path / "e.1")
    assert kind == "archive of training examples"
    assert figures["examples"] == "30 of 30"
    assert figures["archive"].startswith("1 of 1 of set 1e-")
    assert (figures["features"], figures["labels"]) == ("2 numbers, a byte each", "a class of 3")


def test_what_jobs_leave(tmp_path):
    row = {"iteration": 2, "epoch": 1, "jobs": [{}, {}], "taken": "average", "seconds": 1.5, "training": {"ce": 0.25}}
    kind, figures = figures_of(put(tmp_path / "h.jsonl", json.dumps(row) + "\n"))
    assert (kind, figures["jobs"], figures["training"]) == ("history of outer iterations", "2", "ce 0.25")
    with pytest.raises(FormatError, match=r"h\.jsonl: not a row of an outer iteration \('taken'\)"):
        figures_of(put(tmp_path / "h.jsonl", json.dumps({key: row[key] for key in ("iteration", "epoch", "jobs")})))
    state = {"format": "argonaut-outer-iteration", "version": 1, "number": 7, "num_frames": 400}
    save_tensors(tmp_path / "model.7.ckp", {}, state)
    kind, figures = figures_of(tmp_path / "model.7.ckp")
    assert (kind, figures["number"]) == ("checkpoint of an outer iteration", "7")


def test_a_model_cut_short(tmp_path):
    from safetensors.numpy import save_file

    save_file({"W": np.zeros((30, 4), np.float32)}, tmp_path / "m")
    (tmp_path / "m").write_bytes((tmp_path / "m").read_bytes()[:-8])
    with pytest.raises(ModelError, match=r"m: .*, a complete safetensors file"):
        describe_file(str(tmp_path / "m"))
    (tmp_path / "m").write_bytes((tmp_path / "m").read_bytes()[:20])  # not even its description is there
    with pytest.raises(FormatError, match=r"m: truncated, 20 bytes; expected a safetensors file of more than"):
        describe_file(str(tmp_path / "m"))


def test_features_cut_short(tmp_path):
    write_htk(tmp_path / "f", np.ones((3, 10), np.float32), parse_kind("FBANK"))
    (tmp_path / "f").write_bytes((tmp_path / "f").read_bytes()[:50])
    with pytest.raises(FormatError, match=r"f: truncated, 50 bytes; expected 132 for 10 frames of 12 bytes"):
        describe_file(str(tmp_path / "f"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"f: empty file; expected a file that Argonaut reads"),
        (
            b"Some text.\n\nMore of it here.\nlonely\n",
            r"f: 'Some text.' on the first line; expected a file that Argonaut",
        ),
        (b"\n\n", r"f: '' on the first line; expected a file that Argonaut reads"),
        (bytes(40), r"f: binary file of no known format; expected HTK features, audio, a model or a graph \("),
    ],
)
def test_files_of_no_known_kind(tmp_path, content, message):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        describe_file(str(tmp_path / "f"))


def test_a_bad_file_does_not_take_the_others_with_it(tmp_path, capsys):
    good = put(tmp_path / "good", ARPA)
    bad = put(tmp_path / "bad", "")
    missing = tmp_path / "missing"
    assert main(["info", str(bad), str(good), str(missing)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"{good}: ARPA language model",
        "  order      1",
        "  1-grams    2",
        "  marks      <s>",
    ]
    assert err.splitlines() == [
        f"error: {bad}: empty file; expected a file that Argonaut reads",
        f"error: {missing}: No such file or directory",
    ]
    assert main(["info", str(good)]) == 0
    assert main(["info", str(bad)]) == 2


def test_the_worked_example_stands_in_the_help(capsys):
    with pytest.raises(SystemExit):
        main(["info", "--help"])
    assert "argonaut info feat/cen1-fash-b.fbank lm.arpa" in capsys.readouterr().out


def test_compiled_graphs(tmp_path):
    acceptor = put(tmp_path / "graph.fsa", "0 1 [a_s2]\n1 2 A\n2 3 [b_s2]\n3 0.5\n")
    save_graph(precompile(read_acceptor(acceptor)), tmp_path / "g.dg")
    kind, figures = figures_of(tmp_path / "g.dg", verbose=1)
    assert kind == "compiled decoding graph"
    assert figures["arcs"] == "2 of HMM states, 1 of words"
    assert figures["labels"] == "2 HMM states of 2 models and 1 word"
    assert figures["models"] == "a b"
    (tmp_path / "g.dg").write_bytes((tmp_path / "g.dg").read_bytes()[:-1])
    with pytest.raises(FormatError, match="the file is damaged, compile it again"):
        figures_of(tmp_path / "g.dg")


def test_mapped_language_models(tmp_path):
    from decoder.lm.mapped_model import mapped_path, open_language_model

    arpa = put(tmp_path / "lm", ARPA)
    open_language_model(arpa, least_size=0)
    assert figures_of(mapped_path(arpa)) == ("mapped language model", {"order": "1", "words": "2", "n-grams": "2"})


def test_scripts_of_hhed(tmp_path):
    figures = figures_of(put(tmp_path / "hed", 'QS "L" { a-* }\nTB 350 "b_2_" {(*-b+*).state[2]}\nAU "list"\n'))[1]
    assert figures == {"questions": "1", "TB commands": "1", "other commands": "AU"}


def test_lattices_show_their_header(tmp_path):
    lattice = Lattice.of_words([0.0, 1.25], [0], [1], ["A"], [0.0], [0.0], lm_scale=12.0, header={"vocab": "words"})
    write_slf(tmp_path / "l", lattice)
    figures = figures_of(tmp_path / "l")[1]
    assert (figures["ends at"], figures["lmscale"], figures["utterance"]) == ("1.25 s", "12", "not named")
    assert (figures["acscale"], figures["vocab"]) == ("1", "words")


def test_audio_without_a_length(tmp_path):
    import numpy as np
    import soundfile

    soundfile.write(tmp_path / "a.wav", np.ones(400, np.int16), 8000)
    content = bytearray((tmp_path / "a.wav").read_bytes())
    content[40:44] = bytes(4)
    (tmp_path / "b.wav").write_bytes(content)
    figures = figures_of(tmp_path / "b.wav")[1]
    assert (figures["samples"], figures["note"]) == ("400 (0.05 s)", "its header has no length; read to the end")


def test_a_list_of_audio_files(tmp_path):
    import numpy as np
    import soundfile

    soundfile.write(tmp_path / "a.wav", np.zeros((400, 2), np.int16), 8000)
    lines = f"a-1={tmp_path}/a.wav[0,99,0]\na-2={tmp_path}/a.wav[100,399,1]\n"
    figures = figures_of(put(tmp_path / "audio.scp", lines))[1]
    assert figures["ranges"] == "2 entries give one, 400 samples"
    assert figures["first file"] == "audio, 8000 Hz, 2 channels"
    pairs = figures_of(put(tmp_path / "hcopy.list", f"{tmp_path}/a.wav[0,99,0] {tmp_path}/a-1.htk\n"))[1]
    assert pairs["sources"] == "1"
