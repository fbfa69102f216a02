"""NDLNetworkBuilder: the configuration block that names the description of a network (CNTK book 3.2.2)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from acoustic.descriptions.ndl.evaluate import Scope
from acoustic.descriptions.ndl.files import MacroOptions, read_description, read_macros, section_names
from acoustic.descriptions.ndl.macros import MacroTable
from acoustic.descriptions.ndl.parse import parse_ndl
from acoustic.descriptions.ndl.syntax import Name, NdlScript
from acoustic.network.network import Network
from readers.common.files import write_lines
from readers.config.config import Config
from readers.config.options import given, option
from readers.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class NdlOptions(MacroOptions):
    """The options of an NDLNetworkBuilder block, and its files read and parsed."""

    path: Path | None = option(None, "file of the description", cntk="networkDescription")
    run: str = option("", "section of the file, or block of the configuration, that describes the network")
    load: str = option("", "sections or blocks, separated by :, that are loaded before it")
    seed_offset: int = option(0, "number added to the seed of the network", least=0, cntk="randomSeedOffset")
    dump_path: Path | None = option(None, "file for the list of nodes", cntk="dumpFileName")
    macros: MacroTable = given(help="all macros that are loaded or defined")
    script: NdlScript = given(NdlScript(()), "the statements to run")
    notes: tuple[str, ...] = given(
        (), "a line for each argument without effect, and for each macro that replaces another one, with file and line"
    )


def ndl_options(block: Config, base: Callable[[], Network] = Network) -> NdlOptions:
    """Read the options of an NDLNetworkBuilder block and the files that it names.

    `networkDescription` is the file. `load` and `run` of the block take precedence over those in the file; a file
    without sections is run as a whole. Without `networkDescription`, `load` and `run` name blocks of the configuration.
    The description is evaluated once without values, so that errors appear before anything starts.

    Parameters
    ----------
    block : Config
    base : callable
        Returns a network whose nodes the description may use; by default an empty one.

    Returns
    -------
    NdlOptions

    Raises
    ------
    ArgonautError
        With file and line, for syntax errors and for nodes that do not fit together.
    """
    if block.text("run", "").lower() != block.name.lower():  # else its content is the description
        block.refuse_unknown(NdlOptions.option_keys())
    macros = read_macros(block)
    options = NdlOptions.from_block(block, macros=macros)
    loaded, script = _from_file(block, options) if options.path else _from_configuration(block, options)
    # Loaded sections may define nodes too, for example inputs that several networks of a file share.
    statements = [statement for section in loaded for statement in macros.take(section)]
    for macro in script.macros:
        macros.define(macro)
    options = replace(options, script=NdlScript((*statements, *script.statements)))
    scope = _evaluate(options, base(), values=False)  # errors appear before anything starts
    return replace(options, notes=(*macros.notes, *scope.notes))


def _evaluate(options: NdlOptions, network: Network, values: bool) -> Scope:
    scope = Scope(network, options.macros)
    scope.evaluate(options.script, values=values)
    network.validate()
    return scope


def _one(names: tuple[Name, ...]) -> Name:
    if len(names) > 1:
        raise ConfigError(f"{names[0].where}: run names {len(names)} sections; expected one, and the others in load")
    return names[0]


def _from_file(block: Config, options: NdlOptions) -> tuple[list[NdlScript], NdlScript]:
    """Return what to load and what to run from the file that networkDescription names."""
    path = options.path
    where = block.where("networkDescription")
    assert path is not None
    if "+" in str(path) and not path.exists():
        raise ConfigError(f"{where}: networkDescription={path}; expected one file, and the others in ndlMacros")
    file = read_description(path, where, block)
    loaded = [file.section(name) for name in section_names(options.load, block.where("load")) or file.load]
    run = section_names(options.run, block.where("run")) or file.run
    if run:
        options.macros.load(file.script)
        return loaded, file.section(_one(run))
    if file.sections:
        names = ", ".join(name for name, _ in file.sections.values())
        raise ConfigError(f"{path}:1: no run=, and sections {names}; expected run= with the section to run")
    return loaded, file.script


def _from_configuration(block: Config, options: NdlOptions) -> tuple[list[NdlScript], NdlScript]:
    """Return what to load and what to run from blocks of the configuration."""
    run = section_names(options.run, block.where("run"))
    if not run:
        raise ConfigError(
            f"{block.where()}: {block.full_name()} has neither networkDescription nor run; expected "
            "networkDescription=FILE, or run=NAME with a block NAME=[...] of the configuration"
        )
    loaded = section_names(options.load, block.where("load"))
    return [_section(block, name) for name in loaded], _section(block, _one(run))


def _section(block: Config, name: Name) -> NdlScript:
    if not block.is_block(name.text):
        raise ConfigError(f"{name.where}: no block {name.text}=[...] in the configuration; expected one with a script")
    return parse_ndl(block.script(name.text))


def build_ndl_network(
    options: NdlOptions, precision: str = "float", device: str = "cpu", seed: int = 0, base: Network | None = None
) -> Network:
    """Build the network of a description, with its initial values; equal seeds give equal values.

    Parameters
    ----------
    options : NdlOptions
    precision, device : str
        See Network.
    seed : int
    base : Network, optional
        A network to which nodes are added; its precision, device and seed apply.

    Returns
    -------
    Network

    Raises
    ------
    ConfigError, ModelError, ShapeError
        Naming the line of the description and the macro calls that led to it.
    """
    if base is None:
        base = Network(precision, device, seed + options.seed_offset)
    network = _evaluate(options, base, values=True).network
    if options.dump_path is not None:
        write_lines(options.dump_path, network.describe())
    return network


def build_network(block: Config, precision: str = "float", device: str = "cpu", seed: int = 0) -> Network:
    """Build the network of an NDLNetworkBuilder block: `ndl_options`, then `build_ndl_network`.

    Parameters
    ----------
    block : Config
    precision, device : str
        See Network.
    seed : int
        Seed of the initial values.

    Returns
    -------
    Network

    Raises
    ------
    ConfigError, ModelError, ShapeError
        For faults in the options or in the description.
    """
    return build_ndl_network(ndl_options(block), precision, device, seed)
