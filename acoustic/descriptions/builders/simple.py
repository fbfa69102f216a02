"""SimpleNetworkBuilder: predefined networks from a few parameters, by rnnType.

Source: CNTK book, section 3.2.1. parts.py holds what the kinds share; each kind has a module.
"""

from collections.abc import Callable
from typing import NamedTuple

from acoustic.descriptions.builders.crf import CRF_KEYS, crf_options
from acoustic.descriptions.builders.feed_forward import FEED_FORWARD_KEYS, SimpleNetworkOptions, feed_forward_options
from acoustic.descriptions.builders.feed_forward_lm import PROBABILISTIC_KEYS, probabilistic_options
from acoustic.descriptions.builders.language_model import (
    CLASS_LM_KEYS,
    CLASS_LSTM_KEYS,
    CONDITIONAL_LSTM_KEYS,
    LOG_BILINEAR_KEYS,
    class_lm_options,
    class_lstm_options,
    conditional_lstm_options,
    log_bilinear_options,
)
from acoustic.descriptions.builders.noise_contrastive import NOISE_CONTRASTIVE_KEYS, noise_contrastive_options
from acoustic.descriptions.builders.parts import COMMON_KEYS, BuilderOptions
from acoustic.descriptions.builders.recurrent import (
    LSTM_KEYS,
    RECURRENT_KEYS,
    encoder_options,
    lstm_options,
    simple_rnn_options,
)
from acoustic.network.network import Network
from readers.config.config import Config
from readers.errors import ConfigError

__all__ = ["BuilderOptions", "SimpleNetworkOptions", "build_simple_network", "simple_network_options"]


class NetworkKind(NamedTuple):
    """One rnnType: the parameters that it reads besides COMMON_KEYS, and the function that reads its options."""

    keys: tuple[str, ...]
    read: Callable[[Config], BuilderOptions]


KINDS: dict[str, NetworkKind] = {
    "SIMPLENET": NetworkKind(FEED_FORWARD_KEYS, feed_forward_options),
    "SIMPLERNN": NetworkKind(RECURRENT_KEYS, simple_rnn_options),
    "LSTM": NetworkKind(LSTM_KEYS, lstm_options),
    "LSTMENCODER": NetworkKind(LSTM_KEYS, encoder_options),
    "CLASSLM": NetworkKind(CLASS_LM_KEYS, class_lm_options),
    "CLASSLSTM": NetworkKind(CLASS_LSTM_KEYS, class_lstm_options),
    "CLSTM": NetworkKind(CONDITIONAL_LSTM_KEYS, conditional_lstm_options),
    "NPLM": NetworkKind(PROBABILISTIC_KEYS, probabilistic_options),
    "NCELSTM": NetworkKind(NOISE_CONTRASTIVE_KEYS, noise_contrastive_options),
    "LBLM": NetworkKind(LOG_BILINEAR_KEYS, log_bilinear_options),
    "CRF": NetworkKind(CRF_KEYS, crf_options),
}
KINDS_NOT_BUILT = {  # prefix of CNTK's rnnTypes: what they are
    "DEEPRNN": "deep recurrent networks of CNTK in 2015",
    "ALIGNMENTSIMILARITY": "alignment networks of CNTK in 2015",
    "UNIDIRECTIONALLSTM": "LSTM networks of CNTK in 2015",
    "BIDIRECTIONALLSTM": "bidirectional LSTMs; see macro BLSTM of NDL",
}
KEYS_NOT_BUILT = {
    "streamSizes": "several input streams",
    "lookupTableOrderSizes": "several input streams",
    "labelEmbeddingSize": "networks that embed labels",
}
WITHOUT_EFFECT = {
    "addPrior": "CNTK reads needPrior only",  # its examples have addPrior
    "word2cls": "the labels of the reader hold the word classes",
    "cls2index": "the labels of the reader hold the word classes",
}


def simple_network_options(builder: Config) -> BuilderOptions:
    """Read the options of a SimpleNetworkBuilder block.

    Raises ConfigError with file and line for unknown parameters, for networks that are not built, and for values out of
    range.
    """
    name = builder.text("rnnType", "SIMPLENET")
    kind = KINDS.get(name.upper())
    if kind is None:
        known = [what for start, what in KINDS_NOT_BUILT.items() if name.upper().startswith(start)]
        fault = f"not built ({known[0]})" if known else "unknown"
        raise ConfigError(f"{builder.where('rnnType')}: rnnType {name}: {fault}; expected one of {', '.join(KINDS)}")
    _check_keys(builder, name.upper(), kind)
    return kind.read(builder)


def _check_keys(builder: Config, name: str, kind: NetworkKind) -> None:
    """Raise ConfigError for the first parameter of the block that this kind of network does not read."""
    if builder.has_own("addPrior") and builder.bool("addPrior"):
        raise ConfigError(f"{builder.where('addPrior')}: addPrior=true has no effect; expected needPrior=true")
    for unknown in builder.unknown((*COMMON_KEYS, *kind.keys, *WITHOUT_EFFECT)):
        key = unknown.name.rpartition(".")[2].lower()
        readers = [one for one, other in KINDS.items() if key in (known.lower() for known in other.keys)]
        missing = {known.lower(): what for known, what in KEYS_NOT_BUILT.items()}
        if readers:
            raise ConfigError(
                f"{unknown.where}: {unknown.name} has no meaning for rnnType {name}; expected rnnType "
                f"{' or '.join(readers)} with it"
            )
        if key in missing:
            raise ConfigError(f"{unknown.where}: {unknown.name} belongs to {missing[key]}, which is not built")
        raise ConfigError(str(unknown))


def build_simple_network(
    options: BuilderOptions, precision: str = "float", device: str = "cpu", seed: int = 0
) -> Network:
    """Build the network that the options describe, with its initial values; equal seeds give equal values.

    Parameters
    ----------
    options : BuilderOptions
        For instance SimpleNetworkOptions.
    precision, device : str
        See Network.
    seed : int

    Returns
    -------
    Network
    """
    return options.build(precision, device, seed)
