"""Decode stored acoustic scores with a graph of two words: an archive with one utterance, in which `yes` is likely."""

import tempfile
from pathlib import Path

import numpy as np

import argonaut
from readers.kaldi.ark import write_matrix

PHONES = ("sil", "y", "eh", "s", "n", "ow")
SPOKEN = ("sil", "y", "eh", "s", "sil")

with tempfile.TemporaryDirectory() as directory:
    words, states, transitions, out = (Path(directory) / name for name in ("dict", "states", "transitions", "graph"))
    words.write_text("<s> sil\n</s> sil\nyes y eh s\nno n ow\n")
    states.write_text("".join(f"{phone}_s2\n" for phone in PHONES))
    transitions.write_text("".join(f"[{phone}_s2] -0.2 -1.7\n" for phone in PHONES))
    dictionary, tables = argonaut.GraphDictionary(dict=words), {"state_list": states, "transitions": transitions}
    argonaut.make_graph(argonaut.GraphFiles(**tables, dictionary=dictionary, loop=True, out=out))

    scores = np.full((10 * len(SPOKEN), len(PHONES)), -8.0)  # scaled log-likelihoods, a row per frame
    scores[np.arange(len(scores)), [PHONES.index(phone) for phone in SPOKEN for _ in range(10)]] = 0.0
    with (out / "scores.ark").open("wb") as file:
        write_matrix(file, "utterance", scores)

    acoustic = argonaut.AcousticOptions(scores=out / "scores.ark", cntkmap=out / "cntkmap")
    output, search = argonaut.DecodeOutputOptions(words=out / "words.ctm"), argonaut.DecodeSearchOptions(acweight=0.5)
    options = argonaut.DecodeOptions(graph=out / "graph.dg", acoustic=acoustic, output=output, search=search)
    result = argonaut.decode(options, log=print)
    print(output.words.read_text(), end="")

print(f"{result.report.summary()}; {result.num_frames} frames")
