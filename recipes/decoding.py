"""Decoding in recipes: the scores of a development set, and the search options that are chosen with them."""

import json
from pathlib import Path
from typing import Any

from acoustic.scoring.opening import open_scorer
from decoder.graph.graph_file import load_defaults
from decoder.recognizer import assembly
from decoder.recognizer.jobs.decoding import options as decoding
from decoder.scoring.error_counts import Score
from decoder.search.decoder import Decoder
from features.ivectors.adapted import VectorFiles
from readers.common.arrays import Float32Array
from readers.common.files import atomic_write
from readers.common.text import parse_json, read_text
from readers.config.options import OptionFault
from readers.errors import FormatError
from readers.htk.parameter_file import read_htk
from readers.htk.scp import ScpEntry, read_scp
from recipes.cli.console import progress_display
from recipes.pictures import tuning
from recipes.stages import call
from recipes.tuning import Development, Grid, choose


def open_decoder(graph: Path, lm: Path) -> Decoder:
    """Open a decoder.  graph: a directory that `argonaut graph` wrote; lm: an ARPA file."""
    return assembly.open_decoder(graph / "graph.dg", graph / "cntkmap", assembly.open_lm(lm, None))


def score_utterances(model: Path, scp: Path, window: int, ivectors: Path | None = None) -> dict[str, Float32Array]:
    """Return utterance -> scaled log-likelihoods (states, frames) float32.

    ivectors: the list of the i-vectors of these utterances, for a network that takes them.
    """
    scorer = open_scorer(model, window=window)
    vectors = None
    if ivectors is not None:
        vectors = VectorFiles(
            f"{ivectors}", scorer.ivector_dim, scorer.ivector_record, f"with which {model} was trained"
        )

    def frames(entry: ScpEntry) -> Float32Array:
        file = read_htk(entry.path)
        return file.frames if vectors is None else vectors.add_to(file.frames, entry.key, file.period)

    return {entry.key: scorer.score(frames(entry)) for entry in read_scp(scp)}


def choose_options(
    decoder: Decoder, development: Development, grid: Grid, record: Path, workers: int
) -> tuple[dict[str, float], Score]:
    """Choose the search options, and write all trials to `record` as JSON, with a picture beside it.

    Returns (options, their score).
    """
    with progress_display("tune", "trials") as progress:
        chosen, trials = choose(decoder, development, grid, workers, progress)
    with atomic_write(record, "w") as file:
        rows = [
            {
                **options,
                "errors": outcome.score.num_errors,
                "words": outcome.score.num_words,
                "unfinished": outcome.unfinished,
                "widened": outcome.widened,
            }
            for options, outcome in trials
        ]
        file.write('{"chosen": ' + json.dumps(chosen) + ', "trials": [\n')
        file.write(",\n".join(json.dumps(row) for row in rows) + "\n]}\n")
    tuning.draw_tuning({"chosen": chosen, "trials": rows}, record.with_suffix(".png"))
    return chosen, next(outcome.score for options, outcome in trials if options == chosen)


def read_choice(record: Path) -> dict[str, float]:
    """Return the options that `choose_options` wrote."""
    return read_trials(record)["chosen"]


def search_options(record: Path) -> decoding.DecodeSearchOptions:
    """Return these options as those of `argon`.  Raises FormatError for options that it does not have."""
    chosen: dict[str, Any] = {**read_choice(record)}  # of options with several types
    names = {declared.name for declared in decoding.DecodeSearchOptions.declared()}
    try:
        if unknown := next(iter(chosen.keys() - names), None):
            raise FormatError(f"{record}: `chosen`: {unknown} is no option of the search")
        return decoding.DecodeSearchOptions(**chosen)
    except OptionFault as fault:
        raise FormatError(f"{record}: `chosen`: {fault}") from None


def read_trials(record: Path) -> dict[str, Any]:
    """Return what `choose_options` wrote: `chosen`, the options, and `trials`, each with its options and errors.

    Raises FormatError for other content.
    """
    try:
        record_content = parse_json(read_text(record, exact=True))
        fault = _fault_of_trials(record_content)
    except ValueError as error:
        fault = f"no JSON: {error}"
    if fault:
        raise FormatError(f"{record}: {fault}; expected the result of stage tune; run with --from tune")
    return record_content


def _fault_of_trials(found: object) -> str:
    """Return what is wrong with the content of a tune.json; "" if nothing is."""
    if not isinstance(found, dict) or not {"chosen", "trials"} <= set(found):
        return "no object with `chosen` and `trials`"
    if not isinstance(found["trials"], list) or not all(
        isinstance(x, dict) for x in (found["chosen"], *found["trials"])
    ):
        return "`chosen` is no object, or `trials` no list of objects"
    for number, row in enumerate([found["chosen"], *found["trials"]]):
        trial = f"trial {number}" if number else "`chosen`"
        for name, value in row.items():
            if type(value) not in (int, float):
                return f"{trial}: {name} is {value!r}, no number"
        if number and (missing := (set(found["chosen"]) | {"errors", "words"}) - set(row)):
            return f"{trial}: without {', '.join(sorted(missing))}"
    return ""


def store_choice(graph: Path, options: dict[str, float], model: Path, lm: Path, replace: bool = True) -> None:
    """Store chosen options in a graph, a directory of `argonaut graph`, so that `argon` takes them by itself.

    replace: whether to replace those of another model.
    """
    if not replace and load_defaults(graph / "graph.dg").options:
        return
    values: dict[str, Any] = {**options}  # of options with several types
    search = decoding.DecodeSearchOptions(**values, save_defaults=True)
    acoustic = decoding.AcousticOptions(am=model)
    call("argon", decoding.DecodeOptions(graph=graph / "graph.dg", lm=lm, acoustic=acoustic, search=search))
