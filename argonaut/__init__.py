"""Argonaut from Python: recognise, align, train and score, every job by its name.

    import argonaut

    recognizer = argonaut.load("en")
    print(recognizer.transcribe("call.wav"))

    options = argonaut.TieOptions(alignment="states.mlf", features="train.scp", out="hmms",
                                  files=argonaut.StateFiles(state_list="states.list"))
    argonaut.tie(options).num_senones

    reader = argonaut.ArrayReader({"features": frames, "labels": classes})
    network = argonaut.SimpleNetworkOptions(layer_sizes=(39, 128, 40))
    argonaut.train(network, reader, argonaut.TrainingOptions(max_epochs=5, learning_rates_per_minibatch=0.5))

Each command of the shell has a job here, a function that takes its options and returns what it made; the options have
the names, the defaults and the checks of the command's flags.  A name is imported when it is used first, so that
`import argonaut` costs nothing.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
