"""Print the best sentences of a recording, with the confidences of their words.  After `make demo`:

python examples/n_best.py exp/demo/timit.argo exp/demo/corpus-demo-0/TEST/DR1/FQBJ0/SI599.WAV
"""

import sys

import argonaut

if len(sys.argv) != 3:
    sys.exit(print(__doc__))
bundle, audio = sys.argv[1:]
transcript = argonaut.load(bundle).transcribe(audio)
for rank, hypothesis in enumerate(transcript.hypotheses(5), start=1):
    print(rank, hypothesis)
