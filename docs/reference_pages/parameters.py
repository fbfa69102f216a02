"""The parameters of a configuration by block, as their declarations have them."""

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readers.config.options import Option, Options
from readers.config.options.declaration import LIST, SCHEDULE
from readers.config.options.options import is_group

HONOURED, NO_EFFECT, REFUSED = "honoured", "no effect", "refused"
KINDS = {int: "whole number", float: "number", bool: "`true` or `false`", str: "text", Path: "file"}


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Parameters
    ----------
    name : str
    default : str
        Empty if there is none or if it depends on something.
    values : str
        What it may be: range, unit, choices.
    meaning : str
        Of a parameter that is not HONOURED, the reason.
    state : str
    """

    name: str
    default: str = ""
    values: str = ""
    meaning: str = ""
    state: str = HONOURED


@dataclass(frozen=True)
class Place:
    """A block of the configuration.

    Parameters
    ----------
    section : str
        Of the CNTK book, empty if it is not in the book.
    title : str
    tables : mapping
        What each table is about, empty for the block itself -> its parameters.
    others : tuple of Parameter
        Those without effect, and refused ones.
    refused : str
        The reason if the whole block is refused.
    """

    section: str
    title: str
    tables: Mapping[str, tuple[Parameter, ...]]
    others: tuple[Parameter, ...] = ()
    refused: str = ""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters."""
        return (*(row for rows in self.tables.values() for row in rows), *self.others)


def places() -> Iterator[Place]:
    """Yield every block, in the order of chapter 3 of the book."""
    yield _simple_builder()
    yield _ndl_builder()
    yield _sgd()
    yield _parallel()
    yield from _readers()
    yield from _writers()
    yield from _actions()
    yield _top()


def rows_of(*kinds: type[Options]) -> tuple[Parameter, ...]:
    """Return the rows of some classes of options, each name once: as the first class that has it declares it."""
    rows: dict[str, Parameter] = {}
    for kind in kinds:
        for declared in kind.declared():
            for name in (declared.key, *declared.other_keys) if declared.in_blocks else ():
                rows.setdefault(name.lower(), _row(name, declared, kind))
    return tuple(rows.values())


def _row(name: str, declared: Option, kind: type[Options]) -> Parameter:
    if name != declared.key:
        return Parameter(name, meaning=f"another name of `{declared.key}`")
    default = "required" if declared.required else default_text(declared.default)
    keys = {option.name: f"`{option.key}`" for option in kind.declared()}
    meaning = re.sub(r"\{(\w+)\}", lambda match: keys.get(match[1], match[0]), declared.help)
    return Parameter(name, default, values_text(declared), meaning)


def values_text(declared: Option) -> str:
    """Return what a parameter may be."""
    if is_group(declared):
        return "block"
    text = declared.expected or " or ".join(f"`{choice}`" for choice in declared.choices) or declared.describe()
    kind = KINDS.get(declared.type, "text")
    if not text or text == declared.unit:
        text = f"{kind} of {text}" if text else kind
    several = {SCHEDULE: ", one for each epoch", LIST: ", any number of them"}
    return text + several.get("" if declared.expected else declared.several, "")


def default_text(value: object) -> str:
    """Return a default as it is written in a configuration."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "1#INF" if value == float("inf") else f"{value:g}"
    if isinstance(value, list | tuple):
        return ":".join(map(default_text, value))
    text = "" if value is None else str(value)
    return r"\s" if text.isspace() and text.isprintable() else text.encode("unicode_escape").decode()


def _without_effect(names: Mapping[str, str]) -> tuple[Parameter, ...]:
    return tuple(Parameter(name, meaning=reason, state=NO_EFFECT) for name, reason in names.items())


def _refused(names: Mapping[str, str]) -> tuple[Parameter, ...]:
    return tuple(Parameter(name, "", "", f"not implemented ({why})", REFUSED) for name, why in names.items())


def _blocks(*names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(name, values="block", meaning=BLOCKS[name]) for name in names)


BLOCKS = {
    "SimpleNetworkBuilder": "a predefined network",
    "NDLNetworkBuilder": "a network that is described in NDL",
    "EncoderNetworkBuilder": "the network of the encoder",
    "DecoderNetworkBuilder": "the network of the decoder",
    "SGD": "the training",
    "autoAdjust": "automatic control of learning rate and minibatch size, with the names from `autoAdjustLR` on",
    "parallelTrain": "training by several jobs",
    "ModelAveragingSGD": "options of this method",
    "DataParallelSGD": "options of this method",
    "reader": "the data",
    "cvReader": "data on which every epoch is validated",
    "encoderReader": "sentences of the source",
    "decoderReader": "sentences of the target",
    "encoderCVReader": "sentences of the source for the validation",
    "decoderCVReader": "sentences of the target for the validation",
    "writer": "where outputs go",
    "format": "layout of outputs as text",
    "labelIn": "the input, as `inputLabel` of LUSequenceReader names it",
    "labels": "the labels, as `outputLabel` of LUSequenceReader names them",
    "features": "gives the input a second name",
}


# Network builders and training

MODEL = Parameter("modelPath", "required", "file", "the model: every epoch writes MODEL.1, MODEL.2 and so on")


def _simple_builder() -> Place:
    from acoustic.descriptions.builders import simple

    kinds = (kind.options for kind in simple.KINDS.values())
    rows = sorted(rows_of(*kinds, simple.KindOptions), key=lambda row: row.name.lower())
    others = _without_effect(simple.WITHOUT_EFFECT) + _refused(simple.KEYS_NOT_BUILT)
    return Place("3.2.1", "SimpleNetworkBuilder", {"": tuple(rows)}, others)


def _ndl_builder() -> Place:
    from acoustic.descriptions.ndl.builder import NdlOptions

    return Place("3.2.2", "NDLNetworkBuilder", {"": rows_of(NdlOptions)})


def _sgd() -> Place:
    from acoustic.actions.train import TrainOptions
    from acoustic.descriptions.builders.encoder_decoder import PairNames
    from acoustic.nodes.sequence_criterion import SequenceOptions
    from acoustic.training import configuration
    from acoustic.training.control.options import AutoAdjust
    from acoustic.training.options import TrainingOptions
    from acoustic.training.procedures.layerwise import LayerwiseOptions
    from acoustic.training.rules import RULES

    kinds = [TrainingOptions, configuration.SgdOptions, LayerwiseOptions, SequenceOptions]
    kinds += [*dict.fromkeys(RULES.values()), AutoAdjust, PairNames]
    rows = (
        MODEL,
        *(row for row in rows_of(TrainOptions) if row.name == "makeMode"),
        *_blocks("autoAdjust", "parallelTrain"),
        *(row for row in rows_of(*kinds) if row.name not in configuration.WITHOUT_EFFECT),
    )
    return Place("3.3.1", "SGD", {"": rows}, _without_effect(configuration.WITHOUT_EFFECT))


def _parallel() -> Place:
    from acoustic.training.parallel import options

    tables = {
        "": rows_of(options.ParallelOptions, options.MethodOptions) + _blocks(options.AVERAGING, options.DATA_PARALLEL),
        f"In {options.AVERAGING}:": rows_of(options.AveragingOptions),
        f"In {options.DATA_PARALLEL}:": rows_of(options.GradientOptions),
    }
    idle = options.WITHOUT_EFFECT | options.AVERAGING_IDLE | options.GRADIENT_IDLE
    return Place("", "parallelTrain in SGD", tables, _without_effect(idle) + _refused(options.NOT_BUILT))


# Readers and writers


def _readers() -> Iterator[Place]:
    from readers.minibatches.masks import MaskOptions
    from readers.sources.examples import example_reader
    from readers.sources.frames import htk_mlf_options as frames
    from readers.sources.frames import kaldi2_reader
    from readers.sources.frames import stream_options as streams
    from readers.sources.records import binary_reader, records
    from readers.sources.records import uci_options as uci
    from readers.sources.sentences import conditions, sentences
    from readers.sources.sentences import lm_sequence_reader as lm
    from readers.sources.sentences import lu_sequence_reader as lu

    yield _place(
        ("3.4.1", "UCIFastReader"),
        {
            "": (uci.UCIReaderOptions, uci.LabelMapOptions, uci.LabelKindOptions),
            "In a block of features:": (uci.UCIBlockOptions,),
            "In a block of labels:": (uci.UCILabelOptions, uci.LabelMapOptions, uci.LabelKindOptions),
        },
        uci.WITHOUT_EFFECT,
    )
    supervision = {
        "In a block of lattices:": (frames.LatticeOptions,),
        "In a block of HMMs, for lattices in HTK's format:": (frames.HmmOptions,),
        "In a block for lattice-free criteria:": (frames.ChainOptions,),
    }
    yield _place(
        ("3.4.2", "HTKMLFReader"),
        {
            "": (frames.ReaderOptions, frames.ExcerptOptions),
            "In a block of features:": (streams.HTKFeatureOptions,),
            "In specAugment of a block of features:": (MaskOptions,),
            "In a block of labels:": (streams.LabelOptions,),
            **supervision,
        },
        frames.WITHOUT_EFFECT,
    )
    yield _place(
        ("3.1", "BinaryReader"),
        {
            "": (binary_reader.BinaryReaderOptions, uci.LabelMapOptions),
            "In a block that selects a stream:": (records.SelectionOptions, uci.LabelMapOptions),
        },
        binary_reader.WITHOUT_EFFECT,
    )
    yield _place(
        ("", "KaldiReader"),
        {
            "": (frames.ReaderOptions, frames.ExcerptOptions),
            "In a block of features:": (streams.KaldiFeatureOptions,),
            "In a block of labels:": (streams.AlignmentOptions,),
            **supervision,
        },
        frames.WITHOUT_EFFECT,
    )
    yield _place(
        ("", "Kaldi2Reader"),
        {
            "": (kaldi2_reader.Kaldi2Options, frames.ExcerptOptions),
            "In a block of features:": (streams.Kaldi2FeatureOptions,),
            "In a block of labels:": (streams.Kaldi2LabelOptions,),
            **supervision,
        },
        frames.WITHOUT_EFFECT,
        dict.fromkeys(kaldi2_reader.SEQUENCE_NAMES, "Kaldi's lattices; use a block lattices"),
    )
    yield _place(
        ("", "ExampleReader"),
        {
            "": (example_reader.ExampleReaderOptions,),
            "In a block that selects a stream:": (records.SelectionOptions,),
        },
        example_reader.WITHOUT_EFFECT,
    )
    yield _place(
        ("3.4.3", "LMSequenceReader"),
        {
            "": (lm.LMSequenceOptions,),
            "In a block of labels, or the input:": (lm.LMLabelOptions,),
            "In a block of conditions:": (conditions.ConditionOptions,),
        },
        sentences.WITHOUT_EFFECT,
        blocks=("labelIn", "labels", "features"),
    )
    yield _place(
        ("3.4.4", "LUSequenceReader"),
        {"": (lu.LUSequenceOptions,), "In the block of the input, or of the labels:": (lu.LULabelOptions,)},
        sentences.WITHOUT_EFFECT | lu.LABELS_WITHOUT_EFFECT,
        lu.NOT_BUILT,
        blocks=("labelIn", "labels", "features"),
    )


def _writers() -> Iterator[Place]:
    from readers.minibatches.base import WriterBlock
    from readers.writers import htk_mlf_writer, kaldi_writer, sequence_writer, text_writer

    node = "In the block of a node:"
    yield _place(("7.1.9", "HTKMLFWriter"), {"": (WriterBlock,), node: (htk_mlf_writer.HTKNodeOptions,)})
    yield _place(("", "KaldiWriter"), {"": (WriterBlock,), node: (kaldi_writer.KaldiNodeOptions,)})
    yield _place(
        ("", "Kaldi2Reader as a writer"),
        {"": (WriterBlock,), node: (kaldi_writer.Kaldi2NodeOptions,)},
        kaldi_writer.WITHOUT_EFFECT,
    )
    yield _place(
        ("7.4.2", "LMSequenceWriter and LUSequenceWriter"),
        {"": (WriterBlock,), node: (sequence_writer.SequenceNodeOptions,)},
    )
    yield _place(("", "format of action write"), {"": (text_writer.TextFormat,)})


def _place(
    title: tuple[str, str],
    tables: Mapping[str, Iterable[type[Options]]],
    idle: Mapping[str, str] = {},
    refused: Mapping[str, str] = {},
    blocks: Iterable[str] = (),
) -> Place:
    """Return a place; title: section of the book, and the title; blocks: names of the blocks inside."""
    rows = {text: rows_of(*kinds) for text, kinds in tables.items()}
    rows[""] += _blocks(*blocks)
    return Place(*title, rows, _without_effect(idle) + _refused(refused))


# Actions

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


def _actions() -> Iterator[Place]:
    from acoustic.actions.base import ACTIONS
    from acoustic.actions.decode_pairs import ModelHalves

    others = {"testEncoderDecoder": (ModelHalves,)}
    for section, action in (*ACTION_SECTIONS.items(), *(("", action) for action in OUR_ACTIONS)):
        target = ACTIONS.get(action.lower())
        if target is None:
            yield Place(section, f"action {action}", {}, refused="not implemented")
            continue
        module, _, name = target.partition(":")
        kind: Any = getattr(importlib.import_module(f"acoustic.actions.{module}"), name)
        model = (MODEL,) if "SGD" in kind.blocks else ()
        rows = _blocks(*kind.blocks) + model + rows_of(kind.options, *others.get(action, ()))
        yield Place(section, f"action {action}", {"": rows}, _without_effect(kind.without_effect))


def _top() -> Place:
    from acoustic.actions.base import ActionOptions, CommandOptions
    from acoustic.actions.top_level import TopOptions

    rows = (
        Parameter(
            "configFile", "", "files", "configuration files joined by `+`; later ones replace settings of earlier"
        ),
        Parameter("currentDirectory", "", "directory", "where the command works; only on the command line"),
        Parameter("include", "", "file", "a configuration file whose lines take the place of this line"),
        *rows_of(TopOptions, CommandOptions, ActionOptions),
    )
    return Place("3.8", "Top level", {"": rows})
