"""Score how well a text is pronounced, phone by phone, with a bundle that has a map of pronunciation scores:

python examples/pronounce.py en.argo speech.wav it is only for you
"""

import sys

import argonaut

if len(sys.argv) < 4:
    sys.exit(print(__doc__))
bundle, audio, *words = sys.argv[1:]
pronunciation = argonaut.PronunciationAssessor.load(bundle).assess(audio, words)
print(f"{pronunciation.score:.1f} of 10: {pronunciation.text}")
for word in pronunciation.words:
    print(f"{word.start:6.2f} {word.end:6.2f} {word.text} {word.score:.1f}")
    for phone in word.phones:
        said = "" if phone.said is None else f", probably said as {phone.said or 'nothing'}"
        print(f"  {phone.start:6.2f} {phone.end:6.2f} {phone.text} {phone.score:.1f} of 2{said}")
