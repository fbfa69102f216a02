"""The parameters of a configuration by block, with default and state, from the code that reads them."""

import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields

from recipes.reference.source_names import default_text, names_read

HONOURED, REFUSED = "honoured", "refused"
NO_EFFECT = "no effect"


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    default: empty if there is none or if it is not a constant; reason: of a state other than HONOURED.
    """

    name: str
    default: str = ""
    state: str = HONOURED
    reason: str = ""


@dataclass(frozen=True)
class Place:
    """A block of the configuration.

    section: of the CNTK book, empty if it is not in the book; refused: the reason if the whole block is refused.
    """

    section: str
    title: str
    parameters: tuple[Parameter, ...] = ()
    refused: str = ""


def places() -> Iterator[Place]:
    """Yield every block, in the order of chapter 3 of the book."""
    yield _simple_builder()
    yield _ndl_builder()
    yield _sgd()
    yield _parallel()
    yield from _readers()
    yield from _actions()
    yield _top()


def _simple_builder() -> Place:
    from acoustic.descriptions.builders import parts as builder_parts
    from acoustic.descriptions.builders import simple as simple_builder

    kinds = simple_builder.KINDS.values()
    modules = dict.fromkeys(inspect.getmodule(kind.read) for kind in kinds)
    read: dict[str, str | None] = {}
    for module in (builder_parts, *modules):  # the default of the first kind, which is the default kind, is shown
        read |= {name: default for name, default in names_read(module).items() if read.get(name) is None}
    read["rnnType"] = next(iter(simple_builder.KINDS))
    keys = {*builder_parts.COMMON_KEYS, *(key for kind in kinds for key in kind.keys)}
    rows = [Parameter(name, read.get(name) or "") for name in sorted(keys, key=str.lower)]
    rows += _without_effect(simple_builder.WITHOUT_EFFECT)
    rows += _refused(simple_builder.KEYS_NOT_BUILT)
    return Place("3.2.1", "SimpleNetworkBuilder", tuple(rows))


def _ndl_builder() -> Place:
    from acoustic.descriptions.ndl import builder

    read = names_read(builder)
    return Place("3.2.2", "NDLNetworkBuilder", tuple(Parameter(name, read.get(name) or "") for name in builder.KEYS))


def _sgd() -> Place:
    from acoustic.training import configuration
    from acoustic.training.control.options import AutoAdjust
    from acoustic.training.options import TrainingOptions
    from acoustic.training.rules import RULES

    rows = _from_fields(TrainingOptions, TrainingOptions.keys)
    read = names_read(configuration)
    rows += [Parameter(name, read.get(name) or "") for name in configuration.OTHER]
    rows += [Parameter(name, default_text(one.default)) for name, one in configuration.SEQUENCE_OPTIONS.items()]
    for rule in dict.fromkeys(RULES.values()):
        rows += _from_fields(rule, rule.keys)
    rows += _from_fields(AutoAdjust, AutoAdjust.keys)
    rows += _without_effect(configuration.WITHOUT_EFFECT)
    return Place("3.3.1", "SGD", tuple({row.name: row for row in reversed(rows)}.values())[::-1])


def _parallel() -> Place:
    from acoustic.training.parallel import options

    rows = _from_fields(options.ParallelOptions, options.ParallelOptions.keys)
    rows += [Parameter(name) for name in options.KEYS if name not in options.WITHOUT_EFFECT]
    rows += _without_effect(options.WITHOUT_EFFECT)
    return Place("", "parallelTrain in SGD", tuple(rows))


def _from_fields(options: type, keys: Mapping[str, tuple[str, str]]) -> list[Parameter]:
    """Return the rows of a dataclass of options; keys: field -> (name in a configuration, how it is read)."""
    defaults = {
        field.name: "" if field.default is MISSING else default_text(field.default) for field in fields(options)
    }
    return [Parameter(name, defaults.get(field, "")) for field, (name, _) in keys.items()]


def _without_effect(names: Mapping[str, str]) -> list[Parameter]:
    return [Parameter(name, "", NO_EFFECT, reason) for name, reason in names.items()]


def _refused(names: Mapping[str, str]) -> list[Parameter]:
    return [Parameter(name, "", REFUSED, f"not implemented ({purpose})") for name, purpose in names.items()]


SENTENCE_BLOCKS = ("labelIn", "labels", "features")  # as the book names them


def _readers() -> Iterator[Place]:
    yield _reader(
        "3.4.1", "UCIFastReader", "readers.sources.records.uci_options", ("READER_NAMES", "BLOCK_NAMES", "LABEL_NAMES")
    )
    yield _reader(
        "3.4.2",
        "HTKMLFReader",
        "readers.sources.frames.htk_mlf_options",
        ("READER_NAMES", "HTK_FEATURE_NAMES", "LABEL_NAMES", "LATTICE_NAMES", "HMM_NAMES", "CHAIN_NAMES"),
    )
    yield _reader("3.1", "BinaryReader", "readers.sources.records.binary_reader", ("READER_NAMES", "BLOCK_NAMES"))
    tables = ("READER_NAMES", "KALDI_FEATURE_NAMES", "KALDI_LABEL_NAMES")
    yield _reader(
        "",
        "KaldiReader",
        "readers.sources.frames.kaldi_reader",
        tables,
        helper="readers.sources.frames.htk_mlf_options",
    )
    yield _reader(
        "",
        "Kaldi2Reader",
        "readers.sources.frames.kaldi2_reader",
        ("KALDI2_READER_NAMES", "KALDI2_FEATURE_NAMES", "LABEL_NAMES"),
        refused="SEQUENCE_NAMES",
        helper="readers.sources.frames.htk_mlf_options",
    )
    yield _reader("", "ExampleReader", "readers.sources.examples.example_reader", ("READER_NAMES", "BLOCK_NAMES"))
    tables = ("READER_NAMES", "LABEL_NAMES")
    for section, name, module in (("3.4.3", "LMSequenceReader", "lm"), ("3.4.4", "LUSequenceReader", "lu")):
        yield _reader(
            section,
            name,
            f"readers.sources.sentences.{module}_sequence_reader",
            tables,
            helper="readers.sources.sentences.sentences",
            blocks=SENTENCE_BLOCKS,
        )


def _reader(
    section: str,
    title: str,
    module_name: str,
    tables: tuple[str, ...],
    refused: str = "",
    helper: str = "",
    blocks: tuple[str, ...] = (),
) -> Place:
    """Return the place of a reader.

    tables: names of the module's tables of parameter names; refused: name of its table of parameters that are not
    built; helper: a module that reads options for this one; blocks: names of the blocks inside.
    """
    module = importlib.import_module(module_name)
    idle = getattr(importlib.import_module(helper or module_name), "WITHOUT_EFFECT", {})
    read = {
        **names_read("readers.sources.frames.streams"),
        **names_read("readers.sources.records.records"),
        **names_read(helper or module),
    }
    read |= names_read(module)
    names = dict.fromkeys((*(name for table in tables for name in getattr(module, table)), *blocks))
    rows = [Parameter(name, read.get(name) or "") for name in names if name not in idle]
    rows += _without_effect(idle)
    rows += _refused(dict.fromkeys(getattr(module, refused, ()), "Kaldi's lattices; use a block lattices"))
    rows += _refused(getattr(module, "NOT_BUILT", {}))
    return Place(section, title, tuple(rows))


# Section of the book -> action, as the book spells it.
ACTION_SECTIONS = {
    "3.5.1": "train",
    "3.5.2": "adapt",
    "3.5.3": "test",
    "3.5.4": "cv",
    "3.5.5": "write",
    "3.5.6": "edit",
    "3.5.7": "SVD",
    "3.5.8": "dumpnode",
    "3.5.9": "writeWordAndClass",
    "3.5.10": "createLabelMap",
    "3.5.11": "doEncoderDecoder",
    "2.7": "testEncoderDecoder",
    "3.3.1.6": "gradientCheck",
    "3.6": "plot",
    "3.7": "convertDBN",
}
OUR_ACTIONS = ("export", "exportDBN", "makeExamples", "mixUp", "combine")
# Section -> modules that read parameters of the command block for the action.
ACTION_HELPERS = {
    "3.5.6": ("acoustic.descriptions.ndl.files",),
    "3.5.11": ("acoustic.descriptions.builders.encoder_decoder",),
}


def _actions() -> Iterator[Place]:
    from acoustic.actions import ACTIONS

    for section, action in (*ACTION_SECTIONS.items(), *(("", action) for action in OUR_ACTIONS)):
        target = ACTIONS.get(action.lower())
        if target is None:
            yield Place(section, f"action {action}", refused="not implemented")
            continue
        module, _, name = target.partition(":")
        kind = getattr(importlib.import_module(f"acoustic.actions.{module}"), name)
        idle = getattr(kind, "without_effect", {})
        read = {**dict.fromkeys(kind.blocks), **names_read(kind)}
        for helper in ACTION_HELPERS.get(section, ()):
            read |= names_read(helper)
        rows = [Parameter(one, default or "") for one, default in read.items() if one not in idle]
        yield Place(section, f"action {action}", (*rows, *_without_effect(idle)))


def _top() -> Place:
    read = {
        **dict.fromkeys(("configFile", "currentDirectory", "include")),
        **names_read("recipes.cli.cntk"),
        "traceLevel": "0",
    }
    rows = [Parameter(name, text or "") for name, text in read.items()]
    return Place("3.8", "Top level", tuple(rows))
