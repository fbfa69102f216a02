"""Writes bundles: collects the parts of a recogniser, and stores them in a zip file or a directory."""

import contextlib
import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from acoustic.network.model_file import Precision, scoring_bytes
from acoustic.scoring.mixture_scorer import is_mixture_model
from acoustic.scoring.opening import open_scorer
from acoustic.scoring.window_scorer import ONNX_SUFFIX as ONNX
from acoustic.scoring.window_scorer import WindowScorer
from decoder.g2p.model import G2P
from decoder.graph.compiled_graph import DecodingGraph
from decoder.graph.graph_file import load_defaults, load_graph, recorded_silence, save_graph
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel
from decoder.lm.mapped_model import open_language_model, save_language_model
from decoder.recognizer.bundle import (
    ALIGNER,
    CALIBRATION,
    CNTKMAP,
    DESCRIPTION,
    DICTIONARY,
    G2P_MODEL,
    GRAPH,
    IVECTORS,
    LM,
    LOCAL_HEADER,
    MODEL,
    NETWORK_MEMBERS,
    ONNX_MODEL,
    PACKED,
    SEARCH,
    SECOND_PASS,
    SECOND_PASS_SETTINGS,
    SUFFIX,
    TABLES,
    Bundle,
    describe,
)
from decoder.recognizer.calibration import Calibration
from decoder.recognizer.description import AlignerDescription, BundleDescription, MeasuredErrors, ModelCard
from decoder.recognizer.forced_aligner import ForcedAligner
from decoder.recognizer.recognizer import Recognizer
from decoder.results.second_pass import SecondPass, SecondPassOptions
from decoder.search.options import SearchOptions
from decoder.search.table_file import make_search_tables
from decoder.storage.compression import compress, rounded_costs
from decoder.storage.mapped_file import ALIGNMENT
from features import FeatureConfig, frame_period
from readers.common.faults import listed
from readers.common.files import atomic_write, refuse_inputs, require_writable
from readers.common.temporary import temporary_directory
from readers.config.hcopy import read_hcopy_config
from readers.errors import ArgonautError, ConfigError
from readers.htk.dictionary import Pronunciation, write_dictionary
from readers.tables.hmm_tables import write_cntkmap

DATE = (1980, 1, 1, 0, 0, 0)  # of every member, so that equal bundles are equal files
PADDING_ID = 0xD935  # of the extra field that aligns the content of a member
EXTRA_HEADER = 4  # bytes of an extra field before its content
ZIP64_EXTRA = 20  # bytes that zipfile adds to the header of a large member
LARGE = 1 << 31  # bytes of a member from which zipfile may need that field
PIECE = 1 << 20  # bytes copied at a time


@dataclass(frozen=True)
class AlignerParts:
    """A network that aligns instead of that of the search: with shorter frames, its boundaries are better.

    Its features are those of the bundle.

    Attributes
    ----------
    model : Path
        A file of Argonaut.
    graph : Path
        Any graph of its phone models; only the tables beside it are taken.
    window : int, optional
        Frames that its input stacks; by default as the model was trained.
    output : str
        Output node.
    """

    model: Path
    graph: Path
    window: int | None = None
    output: str = "ScaledLogLikelihood"


@dataclass(frozen=True)
class BundleParts:
    """The files and facts of which a bundle is made.

    Attributes
    ----------
    model : Path
        Acoustic model, a file of Argonaut or an ONNX model.
    graph : Path
        Compiled graph; the tables beside it (cntkmap, state_map, ...) belong to it.
    features : Path
        Configuration of HCopy with which audio is processed.
    sample_rate : int
        Of the audio in Hz.
    lm : Path, optional
        ARPA file; without one, only the costs of the graph count.
    dictionary : Path, optional
        With it, the bundle can align words.
    ivectors : Path, optional
        Model of `argonaut ivector train`, for a network that takes i-vectors.
    g2p : Path, optional
        Model of `argonaut g2p train`, which pronounces words that the dictionary lacks.
    second_pass : Path, optional
        Recurrent language model that rescores lattices, trained with LMSequenceReader.
    second_pass_options : SecondPassOptions
    aligner : AlignerParts, optional
    window : int, optional
        Frames that the network's input stacks; by default as the model was trained.
    output : str
        Output node of the network; of an ONNX model by default the only one.
    options : mapping of str to float
        Search options by the names of SearchOptions; they replace those that the graph carries.
    silence : tuple of str, optional
        Names of the silence models; see SearchOptions.
    name, language, licence : str
        For people.
    errors : tuple of MeasuredErrors
    created_by : str
        Program and version.
    lowest_rate : int
        Sample rate in Hz from which audio is accepted without being asked; 0 for `sample_rate`.
    card : ModelCard
    compact : bool
        Whether to make a small file for distribution: weights of 16 bits (bfloat16), those of the aligner of 8, costs
        of the language model in steps of 1/32, members compressed by xz, without the search tables; it is unpacked when
        it is first opened.
    """

    model: Path
    graph: Path
    features: Path
    sample_rate: int
    lm: Path | None = None
    dictionary: Path | None = None
    ivectors: Path | None = None
    g2p: Path | None = None
    second_pass: Path | None = None
    second_pass_options: SecondPassOptions = field(default_factory=SecondPassOptions)
    aligner: AlignerParts | None = None
    window: int | None = None
    output: str = "ScaledLogLikelihood"
    options: Mapping[str, float] = field(default_factory=dict)
    silence: tuple[str, ...] | None = None
    name: str = ""
    language: str = ""
    licence: str = ""
    errors: tuple[MeasuredErrors, ...] = ()
    created_by: str = ""
    lowest_rate: int = 0
    card: ModelCard = field(default_factory=ModelCard)
    compact: bool = False


def pack(parts: BundleParts, path: str | Path) -> Bundle:
    """Write a bundle; it appears completely or not at all, and is opened once before it does.

    Parameters
    ----------
    parts : BundleParts
    path : str or Path
        `NAME.argo` becomes a zip file; any other name a directory, which must not exist yet.

    Returns
    -------
    Bundle

    Raises
    ------
    ArgonautError
        For parts that are damaged or do not fit together.
    ConfigError
        For a directory that exists.
    OSError
    """
    return _publish(path, lambda directory: _fill(parts, directory), parts.compact)


def add_calibration(bundle: Bundle, calibration: Calibration, path: str | Path) -> Bundle:
    """Write a bundle again, with another map of its confidences.

    Parameters
    ----------
    bundle : Bundle
    calibration : Calibration
    path : str or Path
        As for `pack`; it may be the file of the bundle.

    Returns
    -------
    Bundle

    Raises
    ------
    ArgonautError, OSError
        As of `pack`.
    """
    return add_member(bundle, CALIBRATION, calibration.dump(), path)


def add_member(bundle: Bundle, name: str, content: bytes, path: str | Path) -> Bundle:
    """Write a bundle again, as `add_calibration` does, with another content of any optional member."""

    def fill(directory: Path) -> None:
        _copy_members(bundle, directory)
        (directory / name).write_bytes(content)
        describe(bundle.description, directory)

    return _publish(path, fill, bundle.is_compact)


@dataclass(frozen=True)
class BundleWords:
    """What a recogniser knows of words.

    Attributes
    ----------
    dictionary : list of Pronunciation
    lm : LanguageModel
    graph : DecodingGraph
        Of both.
    cntkmap : mapping of str to int
        Network output of each HMM state of the graph.
    """

    dictionary: list[Pronunciation]
    lm: LanguageModel
    graph: DecodingGraph
    cntkmap: Mapping[str, int]


def rewrite(
    bundle: Bundle,
    description: BundleDescription,
    path: str | Path,
    words: BundleWords | None = None,
    model: bytes | None = None,
) -> Bundle:
    """Write a bundle again, with other words, another acoustic model, or both; everything else is kept.

    Parameters
    ----------
    bundle : Bundle
    description : BundleDescription
        Its vocabulary is set here if there are other words.
    path : str or Path
        As for `pack`; it may be the file of the bundle.
    words : BundleWords, optional
        Of a compact bundle, the costs of the language model should be `rounded`.
    model : bytes, optional
        Of `scoring_bytes`.

    Returns
    -------
    Bundle

    Raises
    ------
    ArgonautError, OSError
        As of `pack`.
    """

    def fill(directory: Path) -> None:
        _copy_members(bundle, directory)
        if model is not None:
            (directory / MODEL).write_bytes(model)
        if words is None:
            describe(description, directory)
            return
        write_dictionary(directory / DICTIONARY, words.dictionary)
        save_language_model(words.lm, directory / LM)
        save_graph(words.graph, directory / GRAPH)
        write_cntkmap(directory / CNTKMAP, words.cntkmap)
        _make_search_tables(directory, description)
        describe(replace(description, vocabulary=_num_words(words.graph)), directory)

    return _publish(path, fill, bundle.is_compact)


def _copy_members(bundle: Bundle, directory: Path) -> None:
    for member, part in bundle.parts.items():
        part.map().tofile(directory / member)


def _num_words(graph: DecodingGraph) -> int:
    """Return the number of words that can be recognised."""
    return len({word for word in graph.outputs if word and word[0] != "<"})


def _make_search_tables(directory: Path, description: BundleDescription) -> None:
    """Write the search tables of the graph and the language model in a directory."""
    lm = directory / LM
    options: dict[str, Any] = dict(description.options)
    search = SearchOptions(**options, silence=description.silence)
    make_search_tables(directory / GRAPH, lm if lm.exists() else None, directory / CNTKMAP, search, directory / SEARCH)


def require_bundle_path(path: str | Path, compact: bool, read: Iterable[str | Path | None] = ()) -> None:
    """Check that a bundle can be written at a path, as `require_writable` does for a file, before long work.

    Parameters
    ----------
    path : str or Path
    compact : bool
        Whether the bundle is compact.
    read : iterable of path or None
        Input files, which must not be overwritten.

    Raises
    ------
    ConfigError
        For a file or directory that exists, unless its name is that of a bundle in a file, and for a compact bundle in
        a directory.
    OSError
    """
    path = Path(path)
    refuse_inputs([path], read)
    if compact and path.suffix != SUFFIX:
        raise ConfigError(f"{path}: a directory of a compact bundle; expected a name that ends in {SUFFIX}")
    if path.suffix != SUFFIX and path.exists():
        raise ConfigError(f"{path}: exists; expected a new directory, or a name that ends in {SUFFIX}")
    require_writable(path)


def _publish(path: str | Path, fill: Callable[[Path], None], compact: bool) -> Bundle:
    """Make a bundle of the files that `fill` writes to a directory."""
    path = Path(path)
    require_bundle_path(path, compact)
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary_directory(path) as temporary:
        directory = temporary / "bundle"
        directory.mkdir()
        with _calling(directory, path):
            fill(directory)
            description = Bundle.open(directory).description
            recognizer = Recognizer.load(directory)
            if description.aligner is not None:
                _check_phones(recognizer, ForcedAligner.load(directory), path)
        if compact:
            _compress(description, directory)
        if path.suffix == SUFFIX:
            _write_zip(path, directory)
        else:
            directory.rename(path)
    return Bundle.open(path, verify=True)


@contextlib.contextmanager
def _calling(directory: Path, path: Path) -> Iterator[None]:
    """Let faults that are raised in the body name a bundle, not the directory in which it is made."""
    try:
        yield
    except ArgonautError as fault:
        text = str(fault).replace(f"{directory}{os.sep}", f"{path}:").replace(f"{directory}", f"{path}")
        raise fault.reworded(text) from fault


def _check_phones(recognizer: Recognizer, aligner: ForcedAligner, path: Path) -> None:
    """Raise ConfigError unless a network that aligns has all phones of the words that are recognised."""
    words = {*recognizer.decoder.graph.words} - {SENTENCE_START, SENTENCE_END}
    phones = {phone for entry in aligner.graphs.dictionary or () if entry.word in words for phone in entry.phones}
    if missing := sorted(phones - aligner.graphs.phones):
        raise ConfigError(
            f"{path}: the network that aligns has no model of {listed(missing)}; expected one of every phone"
        )


def _fill(parts: BundleParts, directory: Path) -> None:
    """Write the members and bundle.json to a directory."""
    if parts.aligner is not None and parts.dictionary is None:
        raise ConfigError(f"{parts.aligner.model}: a network that aligns; expected a dictionary, too, for its words")
    graph = load_graph(parts.graph)
    tables = Path(parts.graph).parent
    scorer = _fill_network(parts, directory, "bfloat16" if parts.compact else "float32")
    for name, source in {GRAPH: parts.graph, DICTIONARY: parts.dictionary, IVECTORS: parts.ivectors}.items():
        if source is not None:
            shutil.copyfile(source, directory / name)
    aligner = None
    if parts.aligner is not None:
        other = _fill_network(parts.aligner, directory, "int8" if parts.compact else "float32", ALIGNER)
        aligner = AlignerDescription(other.window, parts.aligner.output)
    if parts.lm is not None:
        lm = open_language_model(parts.lm)
        save_language_model(rounded(lm) if parts.compact else lm, directory / LM)
    if parts.g2p is not None:
        g2p = G2P.load(parts.g2p)
        if parts.compact:
            g2p.language_model = rounded(g2p.language_model)
        g2p.save(directory / G2P_MODEL)
    if parts.second_pass is not None:
        SecondPass(parts.second_pass)  # raises ModelError with the name of the file
        shutil.copyfile(parts.second_pass, directory / SECOND_PASS)
        (directory / SECOND_PASS_SETTINGS).write_bytes(parts.second_pass_options.dump())
    settings = read_hcopy_config(parts.features)
    config = FeatureConfig.from_hcopy(settings)  # raises ConfigError with file and line
    try:
        frame_period(config, parts.sample_rate)
    except ConfigError as fault:
        raise ConfigError(f"{parts.features}: {fault}") from fault
    options: dict[str, Any] = {**load_defaults(parts.graph).options, **parts.options}
    description = BundleDescription(
        name=parts.name or Path(parts.model).stem,
        sample_rate=parts.sample_rate,
        hcopy=dict(settings),
        window=scorer.window,
        record=scorer.record,
        output=getattr(scorer, "output", parts.output),
        options=options,
        silence=parts.silence or _silence_without_marks(graph, tables),
        language=parts.language,
        licence=parts.licence,
        created_by=parts.created_by,
        errors=tuple(parts.errors),
        vocabulary=_num_words(graph),
        lowest_rate=parts.lowest_rate,
        card=parts.card,
        aligner=aligner,
    )
    _make_search_tables(directory, description)
    describe(description, directory)


def _fill_network(
    parts: BundleParts | AlignerParts, directory: Path, precision: Precision, prefix: str = ""
) -> WindowScorer:
    """Write a network and the tables of its phone models to a directory; return its scorer.

    prefix: of the names of the files.
    """
    is_onnx = Path(parts.model).suffix == ONNX
    if is_onnx and prefix:
        raise ConfigError(f"{parts.model}: an ONNX model; expected a network of Argonaut, for alignment")
    output = "" if is_onnx and parts.output == BundleParts.output else parts.output
    scorer = open_scorer(parts.model, output, parts.window)
    model = directory / f"{prefix}{MODEL}"
    if is_onnx:
        shutil.copyfile(parts.model, directory / ONNX_MODEL)
    elif is_mixture_model(parts.model):
        shutil.copyfile(parts.model, model)
    else:
        model.write_bytes(scoring_bytes(parts.model, parts.output, precision))
    tables = Path(parts.graph).parent
    for name in NETWORK_MEMBERS:
        if name == CNTKMAP or (name in TABLES and (tables / name).exists()):
            shutil.copyfile(tables / name, directory / f"{prefix}{name}")
    return scorer


def _silence_without_marks(graph: DecodingGraph, tables: Path) -> tuple[str, ...] | None:
    """Return the silence recorded beside a graph without sentence marks, from which the search would tell it."""
    silence = recorded_silence(tables)[0]
    return (silence,) if silence is not None and SENTENCE_START not in graph.words else None


def _compress(description: BundleDescription, directory: Path) -> None:
    """Change the files of a directory to those of a compact bundle."""
    (directory / SEARCH).unlink()
    describe(description, directory)
    for file in list(directory.iterdir()):
        if file.name != DESCRIPTION:
            (directory / f"{file.name}{PACKED}").write_bytes(compress(file.read_bytes()))
            file.unlink()


def rounded(model: LanguageModel) -> LanguageModel:
    """Return a language model whose costs compress well, as in compact bundles."""
    arrays = model.arrays
    costs = {"cost": rounded_costs(arrays.cost), "backoff_cost": rounded_costs(arrays.backoff_cost)}
    return LanguageModel(arrays._replace(**costs), model.vocabulary, model.order, model.start_state)


def _write_zip(path: Path, directory: Path) -> None:
    """Store the files of a directory in a zip file, bundle.json first, each at a multiple of 64 bytes."""
    files: Iterable[Path] = sorted(directory.iterdir(), key=lambda file: (file.name != DESCRIPTION, file.name))
    with atomic_write(path) as target, zipfile.ZipFile(target, "w") as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.name, DATE)
            large = file.stat().st_size >= LARGE
            entry.file_size = file.stat().st_size
            begin = target.tell() + LOCAL_HEADER.size + len(file.name) + EXTRA_HEADER + (ZIP64_EXTRA if large else 0)
            padding = -begin % ALIGNMENT
            entry.extra = PADDING_ID.to_bytes(2, "little") + padding.to_bytes(2, "little") + bytes(padding)
            with file.open("rb") as source, archive.open(entry, "w", force_zip64=large) as member:
                shutil.copyfileobj(source, member, PIECE)
