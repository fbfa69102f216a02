"""Find the times of the words of a corpus.  After `make demo`, with recordings and their transcripts in corpus:

python examples/align.py exp/demo/timit.argo exp/demo/words/words.dict corpus aligned
"""

import sys

import argonaut

if len(sys.argv) != 5:
    sys.exit(print(__doc__))
model, dictionary, corpus, out = sys.argv[1:]
result = argonaut.align(argonaut.AlignOptions(corpus=corpus, dict=dictionary, model=model, out=out))
for recording in result.recordings:
    for utterance in recording.utterances:
        for word in utterance.words:
            print(f"{recording.name} {word.start:6.2f} {word.end:6.2f} {word.text} {word.confidence:.2f}")
for stretch in result.doubtful:
    print(f"doubtful: {stretch.utterance}: {stretch.words}")
print(f"{result.report.summary()}; {len(result.paths['textgrid'])} TextGrid files")
