"""The names of the variants, as the option --only takes them."""

from readers.errors import ConfigError

# In the order of training.
VARIANTS = {
    "simple": "SimpleNetworkBuilder, fixed schedule (7.1.1)",
    "adjust": "learning rate adjusted on the development set (7.1.2)",
    "ndl": "the same network in NDL (7.1.3)",
    "bottleneck": "auto-encoder, network on its bottleneck (7.1.4)",
    "pretrain": "layer-by-layer discriminative pre-training (7.1.5)",
    "multitask": "states and groups of utterances (7.1.6)",
    "twoinputs": "mel channels with context, MFCC without (7.1.7)",
    "crossvalidate": "the best epoch of `simple` (7.1.8)",
    "lstm": "two layers of LSTM, five frames ahead",
    "lstmp": "the same, cells projected",
    "blstm": "two layers of bidirectional LSTM",
}
RECURRENT = ("lstm", "lstmp", "blstm")  # search options are chosen separately for each of them
GROUPS = {"all": tuple(name for name in VARIANTS if name not in RECURRENT), "recurrent": RECURRENT}


def parse_names(text: str) -> list[str]:
    """Return the variants in a comma-separated list of variants and groups, in training order.  Raises ConfigError."""
    named = [name for word in text.split(",") for name in GROUPS.get(word, (word,))]
    unknown = [name for name in named if name not in VARIANTS]
    if unknown:
        known = ",".join((*GROUPS, *VARIANTS))
        raise ConfigError(f"command line: --only {unknown[0]}; expected some of {known}")
    if "crossvalidate" in named and "simple" not in named:
        raise ConfigError("command line: --only crossvalidate selects an epoch of simple; expected both")
    return [name for name in VARIANTS if name in named]
