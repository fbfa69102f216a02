"""Search tables on disk: a mapped file (see decoder.storage.mapped_file) from which processes share them.

It holds what `SearchTables` would compute from a graph, a language model and a cntkmap, and the records for one set of
options, with and without lattices.  With other options the records that depend on them are made again.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from decoder.graph.compiled_graph import DecodingGraph
from decoder.graph.graph_file import load_graph
from decoder.lm.language_model import LanguageModel
from decoder.lm.mapped_model import load_language_model
from decoder.search.kernels.lookahead import HISTORY, RANGE, WORD_SET, LookAhead
from decoder.search.kernels.search_lm import END_SENTENCE
from decoder.search.kernels.tables import ARC, POSITION, STATE, WORD
from decoder.search.lm_ahead import NO_AHEAD, minima_levels
from decoder.search.options import SearchOptions
from decoder.search.search_graph import RecordKey, SearchTables, record_keys, score_rows, silence_models
from decoder.storage.array_checks import check_costs, check_offsets, check_range
from decoder.storage.mapped_file import MappedFormat, check_lengths
from readers.common.file_part import FilePart
from readers.common.report import Figures
from readers.errors import ConfigError, FormatError
from readers.tables.hmm_tables import read_cntkmap

RECORDS = {  # section -> records, stored as numbers of one type
    **{"positions": POSITION, "plain_positions": POSITION, "states": STATE, "plain_states": STATE},
    **{"arcs": ARC, "words": WORD, "sets": WORD_SET, "ranges": RANGE, "histories": HISTORY},
}
FORMAT = MappedFormat(
    b"ARGONST\n",
    2,
    {
        **{"settings": "<f8", "silence": "|u1", "word_lm": "<i4", "least_lm_cost": "<f8"},
        **{name: f"<i{8 if record in (WORD, HISTORY) else 4}" for name, record in RECORDS.items()},
        **{"state_set": "<i4", "place": "<i4", "cost": "<f4", "level": "<i8", "unknown": "<i4"},
    },
    "file of search tables",
    "argonaut pack makes it",
    "make the bundle again with argonaut pack",
)


def save_search_tables(tables: SearchTables, options: SearchOptions, path: str | Path) -> None:
    """Write search tables, and the records for some options.

    Raises ConfigError for a mixture of language models, and OSError.
    """
    if tables.lm is not None and tables.lm.components:
        raise ConfigError(f"{path}: a mixture of language models; expected a single one")
    silence = silence_models(tables.graph, options.silence)
    ahead = tables.look_ahead_for(options)
    sections = {
        "settings": np.array(_settings(options)),
        "silence": silence.view(np.uint8),
        "word_lm": tables.word_lm,
        "least_lm_cost": tables.least_lm_cost,
    }
    for prefix, lattice in (("plain_", False), ("", True)):
        keys = record_keys(lattice, *_settings(options), silence, len(ahead.sets))
        made = dict(zip(("positions", "arcs", "states", "words"), tables.records(keys, ahead)))
        sections |= {f"{prefix}{name}": made[name] for name in ("positions", "states")}
    sections |= {"arcs": made["arcs"], "words": made["words"]}
    sections |= {name: getattr(ahead, name) for name in LookAhead._fields if name not in ("mixed", "is_sum")}
    for name, record in RECORDS.items():
        sections[name] = np.ascontiguousarray(sections[name], record).view(FORMAT.types[name])
    sections["unknown"] = ahead.unknown.ravel()
    FORMAT.write(path, int(ahead.is_sum), sections)


def make_search_tables(graph: Path, lm: Path | None, cntkmap: Path, options: SearchOptions, path: Path) -> None:
    """Write search tables of a compiled graph, a mapped language model and a cntkmap; see `save_search_tables`."""
    compiled = load_graph(graph, verify=False)
    model = None if lm is None else load_language_model(lm)
    save_search_tables(SearchTables.make(compiled, model, read_cntkmap(cntkmap), f"{cntkmap}"), options, path)


def load_search_tables(
    path: str | Path | FilePart,
    graph: DecodingGraph,
    lm: LanguageModel | None,
    cntkmap: Mapping[str, int],
    where: str,
    verify: bool | None = None,
) -> SearchTables:
    """Map search tables into memory and check them.

    Parameters
    ----------
    path : str, Path or FilePart
        A file that `save_search_tables` wrote.
    graph : DecodingGraph
    lm : LanguageModel or None
    cntkmap : mapping of str to int
        Network output of each HMM state; called `where` in messages.  All three are those of the saved tables.
    verify : bool, optional
        Whether to compare the checksums of the file, by default when it is first opened.  The numbers are checked in
        any case.

    Raises
    ------
    FormatError
        For another kind of file, a damaged one, and tables of another graph or language model.
    GraphError
        For numbers out of range.
    OSError
    """
    # Copy on write: the kernels are compiled for writable arrays.
    number, found = FORMAT.read(path, mode="c", verify=verify)
    for name, record in RECORDS.items():
        if found[name].nbytes % record.itemsize:
            raise FormatError(f"{path}: {found[name].nbytes} bytes of {name}; expected whole records; {FORMAT.again}")
        found[name] = found[name].view(record)
    score_row = score_rows(graph, cntkmap, where)
    _check_records(found, graph, lm, score_row, path)
    _check_ahead(found, graph, lm, path)
    ahead = NO_AHEAD
    if len(found["sets"]):
        unknown = found["unknown"].reshape(-1, len(found["sets"])) if len(found["unknown"]) else NO_AHEAD.unknown
        arrays = {name: found[name] for name in LookAhead._fields if name not in ("mixed", "unknown", "is_sum")}
        ahead = LookAhead(mixed=NO_AHEAD.mixed, unknown=unknown, is_sum=number == 1, **arrays)
    ready: dict[RecordKey, np.ndarray] = {}
    for prefix, lattice in (("plain_", False), ("", True)):
        sil_cost, lm_scale, word_penalty = found["settings"].tolist()
        silence = found["silence"].astype(bool)
        keys = record_keys(lattice, sil_cost, lm_scale, word_penalty, silence, len(ahead.sets))
        ready |= zip(keys, (found[f"{prefix}positions"], found["arcs"], found[f"{prefix}states"], found["words"]))
    return SearchTables(graph, lm, score_row, found["word_lm"], found["least_lm_cost"], ahead, ready)


def _settings(options: SearchOptions) -> tuple[float, float, float]:
    return float(options.sil_cost), float(options.lm_scale), float(options.word_penalty)


def _check_records(
    found: Mapping[str, np.ndarray],
    graph: DecodingGraph,
    lm: LanguageModel | None,
    score_row: np.ndarray,
    path: str | Path | FilePart,
) -> None:
    """Check the records on which the kernels rely."""
    arrays = graph.arrays
    num_positions = graph.num_positions
    num_states = graph.num_states
    num_arcs = len(arrays.emitting_cost)
    num_words = len(arrays.word_cost)
    num_rows = int(score_row[graph.used_states].max(initial=-1)) + 1
    num_lm_words = 0 if lm is None else len(lm.vocabulary)
    sizes = {"settings": 3, "silence": len(graph.models), "word_lm": len(graph.words), "arcs": num_arcs}
    sizes |= {"least_lm_cost": len(graph.words), "words": num_words}
    sizes |= dict.fromkeys(("positions", "plain_positions"), num_positions)
    sizes |= dict.fromkeys(("states", "plain_states"), num_states + 1)
    for name, size in sizes.items():
        if len(found[name]) != size:
            raise FormatError(
                f"{path}: {len(found[name])} entries in {name}; expected {size} as in the graph; {FORMAT.again}"
            )
    bounds = {
        "positions": {"row": num_rows, "exit": num_states, "first_arc": num_arcs + 1, "end_arc": num_arcs + 1},
        "arcs": {"target": num_positions, "row": num_rows},
        "states": {"level": int(arrays.word_level.max(initial=0)) + 1},
        "words": {"target": num_states},
    }
    for name, records in ((name, found[name]) for name in RECORDS if name.removeprefix("plain_") in bounds):
        for field, bound in bounds[name.removeprefix("plain_")].items():
            check_range(records[field], bound, f"{name}.{field}", path)
        for field in ("self_cost", "forward_cost", "final_cost", "cost", "bound", "paid"):
            if field in (records.dtype.names or ()):
                check_costs(records[field], f"{name}.{field}", path)
    for name in ("states", "plain_states"):
        check_offsets(found[name]["first_arc"], num_arcs, f"{name}.first_arc", path)
        check_offsets(found[name]["first_word"], num_words, f"{name}.first_word", path)
    for name, ids in (("word_lm", found["word_lm"]), ("words.lm", found["words"]["lm"])):
        check_range(ids.astype(np.int64) - END_SENTENCE, num_lm_words - END_SENTENCE, f"{name} + 2", path)
    check_range(found["arcs"]["word_set"].astype(np.int64) + 1, len(found["sets"]) + 1, "arcs.word_set + 1", path)
    check_costs(found["least_lm_cost"], "least_lm_cost", path)
    if not np.isfinite(found["settings"]).all():
        raise FormatError(f"{path}: settings are not finite; expected numbers; {FORMAT.again}")


def _check_ahead(
    found: Mapping[str, np.ndarray], graph: DecodingGraph, lm: LanguageModel | None, path: str | Path | FilePart
) -> None:
    """Check the look-ahead tables on which the kernels rely."""
    sets = found["sets"]
    place = found["place"]
    if bool(len(sets)) != bool(np.any(found["word_lm"] >= 0)):
        raise FormatError(f"{path}: {len(sets)} sets of words; expected some if words are in an LM; {FORMAT.again}")
    if not len(sets):
        return
    assert lm is not None  # since words are in it
    histories = found["histories"]
    level = found["level"]
    lengths = {name: len(found[name]) for name in ("state_set", "histories", "cost")}
    lengths |= {
        "graph": graph.num_states,
        "language model": lm.num_states + 1,
        "block minima": int(level[-1]) if len(level) else -1,
    }
    pairs = (("graph", "state_set"), ("language model", "histories"), ("block minima", "cost"))
    check_lengths(lengths, pairs, path)
    if not np.array_equal(level, minima_levels(len(place))) or len(found["unknown"]) not in (0, len(sets)):
        raise FormatError(f"{path}: wrong sizes of the block minima or unknown words; {FORMAT.again}")
    check_range(found["state_set"], len(sets), "state_set", path)
    check_offsets(histories["first"], len(place), "histories.first", path)
    lower = histories["backoff_state"][:-1]
    if lower.min() < 0 or lower[0] != 0 or np.any(lower[1:] >= np.arange(1, len(lower))):
        raise FormatError(f"{path}: backing off does not end; expected to reach the empty history; {FORMAT.again}")
    check_range(found["unknown"].astype(np.int64) + 1, len(lm.vocabulary) + 1, "unknown + 1", path)
    check_costs(histories["backoff_cost"], "histories.backoff_cost", path)
    check_costs(found["cost"], "cost", path)
    check_costs(sets["least"], "sets.least", path)
    check_costs(sets["graph_cost"], "sets.graph_cost", path, infinite=False)
    check_range(sets["end"], len(found["ranges"]) + 1, "sets.end", path)
    check_range(sets["first"], len(found["ranges"]) + 1, "sets.first", path)
    low = found["ranges"]["low"]
    if np.any(sets["first"] > sets["end"]) or np.any(low < 0) or np.any(low >= found["ranges"]["high"]):
        raise FormatError(f"{path}: sets or ranges of words end before they begin; {FORMAT.again}")


def summary(path: str) -> Figures:
    """Figures of a file that only makes sense with its graph and language model."""
    found = FORMAT.read(path, verify=True)[1]
    sil_cost, lm_scale, word_penalty = found["settings"].tolist()
    return [
        ("words", len(found["word_lm"])),
        ("sets of next words", len(found["sets"]) // 4),
        ("made for", f"sil_cost {sil_cost:g}, lm_scale {lm_scale:g}, word_penalty {word_penalty:g}"),
    ]
