"""A model of vosk here and in vosk: words, processor time, load time and memory, each in a process of its own.

    python -m benchmarks.vosk_words MODEL_DIRECTORY BUNDLE PYTHON WAV [WAV ...]

BUNDLE is what `argonaut pack MODEL_DIRECTORY` made; PYTHON is the interpreter of an environment with the package vosk;
the audio is 16-bit WAV of one channel.  Both use one thread and keep the beams of the model.  Each pair of words that
differ is printed with -cost, which is higher for the better path.  The costs of graph and language model count 0.9
times, as in vosk, which reads words and cost from a lattice so scaled; here the search alone chooses the words.
RATIO is the processor time of vosk divided by ours.
"""

import json
import subprocess
import sys

from benchmarks import ONE_THREAD

SHARED = """
import json, resource, sys, time, wave
begin = time.perf_counter()
{load}
seconds = time.perf_counter() - begin
results = {{}}
busy = length = 0.0
for path in sys.argv[2:]:
    with wave.open(path) as audio:
        rate, content = audio.getframerate(), audio.readframes(audio.getnframes())
    if path == sys.argv[2]:
        recognise(content, rate)  # what is made once, such as compiled kernels, does not count
    begin = time.process_time()
    results[path] = recognise(content, rate)
    busy += time.process_time() - begin
    length += len(content) / 2 / rate
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([results, busy / length, seconds, memory]))
"""
VOSK = SHARED.format(
    load="""
from vosk import KaldiRecognizer, Model, SetLogLevel
SetLogLevel(-1)
model = Model(sys.argv[1])
def recognise(content, rate):
    recogniser = KaldiRecognizer(model, rate)
    recogniser.SetMaxAlternatives(1)  # the best path and its cost, not the words of least expected error
    recogniser.AcceptWaveform(content)
    best = json.loads(recogniser.FinalResult())["alternatives"][0]
    return best["text"].strip(), best["confidence"]
"""
)
OURS = SHARED.format(
    load="""
import numpy as np
from decoder import Recognizer
recogniser = Recognizer.load(sys.argv[1])
decoder = recogniser.decoder.with_options(lattice_beam=None, new_sentence=None)
def recognise(content, rate):
    _, result = recogniser.front_end.search(np.frombuffer(content, "<i2"), rate, decoder)
    acoustic = decoder.options.acweight * result.path.acoustic.sum()
    return " ".join(result.text), acoustic - 0.9 * (result.cost + acoustic)
"""
)


def measure(python, program, *arguments):
    """(words and -cost by file, real-time factor, seconds to load, MB) of a program."""
    command = [python, "-c", program, *arguments]
    output = subprocess.run(command, env=ONE_THREAD, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(output.splitlines()[-1])


def main() -> int:
    model, bundle, python, *audio = sys.argv[1:]
    ours = measure(sys.executable, OURS, bundle, *audio)
    theirs = measure(python, VOSK, model, *audio)
    for path in audio:
        if ours[0][path][0] != theirs[0][path][0]:
            for name, (words, score) in (("ours", ours[0][path]), ("vosk", theirs[0][path])):
                print(f"{path}\t{name}\t{score:.2f}\t{words}")
    equal = sum(ours[0][path][0] == theirs[0][path][0] for path in audio)
    print(f"equal words in {equal} of {len(audio)} utterances")
    for name, (_, factor, seconds, memory) in (("ours", ours), ("vosk", theirs)):
        print(f"{name}: real-time factor {factor:.3f}, loads in {seconds:.1f} s, {memory:.0f} MB")
    print(f"RATIO vosk words {theirs[1] / ours[1]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
