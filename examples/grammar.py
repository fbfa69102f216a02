"""Accept a recording only if it is one of a few sentences.  After `make demo`:

python examples/grammar.py exp/demo/timit.argo exp/demo/corpus-demo-0/TEST/DR1/FQBJ0/SI599.WAV \\
    "arthur danced across the village on tuesday" "george gathered"
"""

import sys

import argonaut

if len(sys.argv) < 4:
    sys.exit(print(__doc__))
bundle, audio, *sentences = sys.argv[1:]
transcript = argonaut.load(bundle).with_grammar(sentences, threshold=-1).transcribe(audio)
verdict = "accepted" if transcript.accepted else "rejected"
print(f"{verdict}: {transcript.text} (score {transcript.grammar_score:.2f})")
