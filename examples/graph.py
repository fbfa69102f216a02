"""Build a decoding graph of two words from states with their transitions, a dictionary and a loop over the words."""

import tempfile
from pathlib import Path

import argonaut

PHONES = ("sil", "y", "eh", "s", "n", "ow")
DICTIONARY = {"<s>": "sil", "</s>": "sil", "yes": "y eh s", "no": "n ow"}

with tempfile.TemporaryDirectory() as directory:
    states, transitions, words = (Path(directory) / name for name in ("states", "transitions", "words.dict"))
    states.write_text("".join(f"{phone} {phone}_s2 {phone}_s3\n" for phone in PHONES))
    transitions.write_text("".join(f"[{phone}_s{state}] -0.2 -1.7\n" for phone in PHONES for state in (2, 3)))
    words.write_text("".join(f"{word} {phones}\n" for word, phones in DICTIONARY.items()))
    dictionary = argonaut.GraphDictionary(dict=words)
    graph = argonaut.GraphOptions(silence="sil", silence_probability=0.5)
    out = Path(directory) / "graph"
    files = argonaut.GraphFiles(
        states=states, transitions=transitions, dictionary=dictionary, loop=True, graph=graph, out=out
    )
    result = argonaut.make_graph(files, log=print)

print(f"{result.graph.acceptor.num_states} states, {result.graph.acceptor.num_arcs} arcs; {result.report.summary()}")
