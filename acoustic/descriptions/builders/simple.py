"""SimpleNetworkBuilder: predefined networks from a few parameters, by rnnType.

Source: CNTK book, section 3.2.1. parts.py holds what the kinds share; each kind has a module.
"""

from dataclasses import dataclass
from typing import NamedTuple

from acoustic.descriptions.builders.crf import CrfOptions
from acoustic.descriptions.builders.feed_forward import SimpleNetworkOptions
from acoustic.descriptions.builders.feed_forward_lm import ProbabilisticOptions
from acoustic.descriptions.builders.language_model import (
    ClassLstmOptions,
    ClassOptions,
    ConditionalLstmOptions,
    LogBilinearOptions,
)
from acoustic.descriptions.builders.noise_contrastive import NoiseContrastiveOptions
from acoustic.descriptions.builders.parts import BuilderOptions
from acoustic.descriptions.builders.recurrent import EncoderOptions, LstmOptions, SimpleRnnOptions
from acoustic.network.network import Network
from readers.config.config import Config
from readers.config.options import Options, option
from readers.errors import ConfigError

__all__ = ["BuilderOptions", "SimpleNetworkOptions", "build_simple_network", "simple_network_options"]


class NetworkKind(NamedTuple):
    """One rnnType: the class of its options."""

    options: type[BuilderOptions]


KINDS: dict[str, NetworkKind] = {
    "SIMPLENET": NetworkKind(SimpleNetworkOptions),
    "SIMPLERNN": NetworkKind(SimpleRnnOptions),
    "LSTM": NetworkKind(LstmOptions),
    "LSTMENCODER": NetworkKind(EncoderOptions),
    "CLASSLM": NetworkKind(ClassOptions),
    "CLASSLSTM": NetworkKind(ClassLstmOptions),
    "CLSTM": NetworkKind(ConditionalLstmOptions),
    "NPLM": NetworkKind(ProbabilisticOptions),
    "NCELSTM": NetworkKind(NoiseContrastiveOptions),
    "LBLM": NetworkKind(LogBilinearOptions),
    "CRF": NetworkKind(CrfOptions),
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


@dataclass(frozen=True)
class KindOptions(Options):
    """The option that chooses the kind of network."""

    kind: str = option("SIMPLENET", "kind of network", cntk="rnnType")


def simple_network_options(builder: Config) -> BuilderOptions:
    """Read the options of a SimpleNetworkBuilder block.

    Raises ConfigError with file and line for unknown parameters, for networks that are not built, and for values out of
    range.
    """
    name = KindOptions.from_block(builder).kind
    kind = KINDS.get(name.upper())
    if kind is None:
        not_built = [what for start, what in KINDS_NOT_BUILT.items() if name.upper().startswith(start)]
        fault = f"not built ({not_built[0]})" if not_built else "unknown"
        raise ConfigError(f"{builder.where('rnnType')}: rnnType {name}: {fault}; expected one of {', '.join(KINDS)}")
    _check_keys(builder, name.upper(), kind.options)
    return kind.options.from_block(builder)


def _check_keys(builder: Config, name: str, options: type[BuilderOptions]) -> None:
    """Raise ConfigError for the first parameter of the block that this kind of network does not read."""
    if builder.has_own("addPrior") and builder.bool("addPrior"):
        raise ConfigError(f"{builder.where('addPrior')}: addPrior=true has no effect; expected needPrior=true")
    for unknown in builder.unknown((*KindOptions.option_keys(), *options.option_keys(), *WITHOUT_EFFECT)):
        key = unknown.name.rpartition(".")[2].lower()
        readers = [
            kind for kind, network_kind in KINDS.items() if key in map(str.lower, network_kind.options.option_keys())
        ]
        missing = {absent_key.lower(): what for absent_key, what in KEYS_NOT_BUILT.items()}
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
