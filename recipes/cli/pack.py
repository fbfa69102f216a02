"""Make a bundle: one file with everything that a recogniser needs, for `argonaut transcribe` and for Python.

worked example: pack the result of a recipe
  argonaut pack exp/an4 -o an4.argo
prints
  an4.argo: 12.3 MB, WER 4.9% (test, 130 utterances, 773 words)
after which
  argonaut transcribe an4.argo speech.wav
prints the words of speech.wav.

Without a recipe, name the parts:
  argonaut pack --model net.dnn --graph graph/graph.dg --lm words.arpa --features fbank.hcopy --dict words.dict \\
                --rate 16000 -o my.argo
An acoustic model of CMU Sphinx, the directory with mdef and means, needs a dictionary of its phones and a language
model:
  argonaut pack en-us --dict words.dict --lm words.arpa -o my.argo
A model set of HTK, the directory with hmmdefs, perhaps with a list of models, dict and config:
  argonaut pack hmm15 --lm words.arpa --rate 16000 -o my.argo
A model with CTC of another toolkit, in ONNX, needs the names of its outputs and a language model; --dict, a lexicon of
tokens, is used where there is one:
  argonaut pack --model ctc.onnx --tokens tokens.txt --lm words.arpa --features fbank.hcopy --rate 16000 -o my.argo
A model of vosk, or an experiment of Kaldi with its graph and mfcc.conf, has everything:
  argonaut pack vosk-model -o my.argo
The tables that `argonaut graph` wrote beside the graph are packed, too.  The search options are those that
`argon --save-defaults` stored in the graph, or those of --tuned.

The result is a zip file without compression, whose members are mapped into memory where they lie; a name that does not
end in .argo becomes a directory.  With --compact, the file is small, and unpacked once to the user's cache.
"""

from recipes.cli.command import Command, Console
from recipes.packing import PackOptions, make_bundle


def run(options: PackOptions, console: Console) -> int:
    bundle = make_bundle(options, console.note)
    measured = "".join(f", {errors}" for errors in bundle.description.errors)
    print(f"{bundle.path}: {bundle.size / 1e6:.1f} MB{measured}")
    return 0


COMMAND = Command("pack", PackOptions, run)
