"""Networks from what describes them: a model file, NDL, or the options of a builder."""

from pathlib import Path

from acoustic.descriptions.builders.parts import BuilderOptions
from acoustic.descriptions.kaldi_nnet import read_kaldi_network
from acoustic.descriptions.ndl import NdlOptions, build_ndl_network, build_network
from acoustic.network.model_file import is_model, load_model
from acoustic.network.network import Network
from readers.config.config import Config
from readers.config.syntax import Source
from readers.kaldi.nnet3.nnet import is_kaldi_model

NetworkSource = Network | BuilderOptions | NdlOptions | str | Path


def open_network(source: NetworkSource, precision: str | None = None, device: str = "cpu", seed: int = 0) -> Network:
    """Return the network that something describes, with its stored or its initial values.

    Parameters
    ----------
    source : str, Path, BuilderOptions, NdlOptions or Network
        A model file, also a `final.mdl` of Kaldi's nnet3; a file of NDL; statements of NDL, a text of more than one
        line; options of a predefined network, such as ``SimpleNetworkOptions(layer_sizes=(363, 512, 130))``; or a
        network, which is returned.
    precision : str, optional
        ``float`` or ``double``; by default that of a model, and ``float`` for others.
    device : str
        ``cpu``, ``gpu`` or ``gpu:N``.
    seed : int
        Seed of initial values: equal seeds give equal values.

    Returns
    -------
    Network

    Raises
    ------
    ArgonautError
        For a damaged model and a description with faults.
    OSError
    """
    if isinstance(source, Network):
        return source
    if isinstance(source, BuilderOptions):
        return source.build(precision or "float", device, seed)
    if isinstance(source, NdlOptions):
        return build_ndl_network(source, precision or "float", device, seed)
    if "\n" not in str(source):
        if is_model(source):
            return load_model(source, precision, device)
        if is_kaldi_model(source):
            return read_kaldi_network(source, precision=precision, device=device)
        text = f'NDLNetworkBuilder=[networkDescription="{source}"]'
    else:
        text = f"Network=[{source}\n]\nNDLNetworkBuilder=[run=Network]"
    config = Config()
    config.merge(Source.from_text(text, "NDL"))
    return build_network(config.block("NDLNetworkBuilder"), precision or "float", device, seed)
