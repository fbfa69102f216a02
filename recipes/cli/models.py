"""List the installed bundles, each with a card: data, licence, sizes, error rates, and what it is bad at.

worked example:
  argonaut models
prints
  en
    language    en
    licence     Apache-2.0
    data        speechocean762, train: 125 speakers
    hours       2.9
    audio       16000 Hz, from 8000 Hz
    vocabulary  36287 words
    errors      WER 4.9% (an4 test, 130 utterances, 773 words)
    ...
and `en` may stand wherever a bundle is expected:
  argonaut transcribe en speech.wav
A file or directory called `en` in the working directory comes first.  A bundle is installed by copying it to one of the
directories of the environment variable ARGONAUT_MODELS, to ~/.local/share/argonaut/models (XDG_DATA_HOME; on Windows
argonaut/models in LOCALAPPDATA), or to the package; the first that has the name counts.
"""

import json
from dataclasses import dataclass

from readers.config.options import Options, option
from recipes.cli.command import Command, Console


@dataclass(frozen=True, kw_only=True)
class ModelsOptions(Options):
    """How the bundles are listed."""

    json: bool = option(False, "print one JSON object per line and bundle")


def run(options: ModelsOptions, console: Console) -> int:
    from decoder.recognizer.jobs.model_cards import models
    from decoder.storage.installed import model_directories

    installed = models()
    for model in installed:
        if options.json:
            print(json.dumps(model.as_json(), ensure_ascii=False))
            continue
        print(model.name)
        figures = [(name, value) for name, value in model.figures() if (name, value) != ("name", model.name)]
        width = max(len(name) for name, _ in figures)
        for name, value in figures:
            print(f"  {name:{max(width, 10)}} {value}")
    if not installed:
        console.tell(f"no bundle is installed; they are looked for in {', '.join(map(str, model_directories()))}")
    return 0


COMMAND = Command("models", ModelsOptions, run)
