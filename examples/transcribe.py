"""Print the words of recordings, with times and confidences.  After `make demo`:

python examples/transcribe.py exp/demo/timit.argo exp/demo/corpus-demo-0/TEST/DR1
"""

import sys

import argonaut


def show(file: argonaut.TranscribedFile) -> None:
    """Print a recording as soon as it is recognised."""
    print(f"{file.recording.path}: {file.transcript.text}")
    for word in file.transcript.words:
        print(f"  {word.start:6.2f} {word.end:6.2f} {word.text} {word.confidence:.2f}")


if len(sys.argv) < 3:
    sys.exit(print(__doc__))
bundle, *audio = sys.argv[1:]
result = argonaut.transcribe(argonaut.TranscribeOptions(bundle=bundle, audio=audio), take=show)
print(f"{result.num_words} words in {result.seconds:.1f} s; {result.report.summary()}")
