"""Recognise a recording without and with words that are preferred.  After `make demo`:

python examples/hotwords.py exp/demo/timit.argo exp/demo/corpus-demo-0/TEST/DR1/FQBJ0/SI599.WAV vivid
"""

import sys

import argonaut

if len(sys.argv) < 4:
    sys.exit(print(__doc__))
bundle, audio, *words = sys.argv[1:]
recognizer = argonaut.load(bundle)
print(f"without: {recognizer.transcribe(audio)}")
for bonus in (2.0, 8.0):
    preferring = recognizer.with_hotwords(dict.fromkeys(words, bonus))
    print(f"bonus {bonus:g}: {preferring.transcribe(audio)}")
