"""Recognise a recording while it arrives.  After `make demo`:

python examples/stream.py exp/demo/timit.argo exp/demo/corpus-demo-0/TEST/DR1/FQBJ0/SI599.WAV

`-` in place of the recording is standard input, such as `arecord -q -t wav -f S16_LE -r 16000 |`.
"""

import sys

import argonaut


def show(event: argonaut.RecognitionEvent) -> None:
    """Print the words of an utterance that has ended, and what is recognised before."""
    print(f"{event.end:6.2f} s: {event.text}" if event.is_final else f"      ... {event.stable} | {event.unstable}")


if len(sys.argv) != 3:
    sys.exit(print(__doc__))
bundle, audio = sys.argv[1:]
result = argonaut.transcribe_live(argonaut.TranscribeOptions(bundle=bundle, audio=audio), take=show)
print(f"{result.report.summary()}; real-time factor {result.real_time_factor:.2f}")
