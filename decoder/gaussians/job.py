"""The job `flat_start`: from features, transcripts and a dictionary to monophone models and an alignment."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decoder.gaussians.options import FlatStartOptions
from decoder.gaussians.pictures import draw_passes
from decoder.gaussians.shards import TrainingUtterance
from decoder.gaussians.training import FlatStart, Training
from decoder.graph.options import SHORT_PAUSE
from decoder.graph.phone_models import distil
from readers.common.files import held_alone, require_writable, write_lines
from readers.common.jobs.runner import Runner, thread_runner
from readers.common.names import names_for_any_path
from readers.common.report import Log, Progress, RunReport, silent, staged
from readers.config.side_files import SideFiles, write_side_file
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.mmf_writer import write_mmf
from readers.htk.parameter_file import kind_name, read_htk_header
from readers.htk.scp import read_feature_list
from readers.tables.hmm_tables import write_transitions

STATE, FEATURES, PASSES, REPORT = "passes.safetensors", "features.json", "passes.jsonl", "report"
PICTURE = "passes.png"
RESULTS = (
    "hmmdefs", "states.mlf", "states.list", "transitions", "phones.list", FEATURES, PASSES, PICTURE, REPORT, STATE,
)  # fmt: skip


@dataclass(frozen=True)
class FlatStartResult:
    """What a flat start made.

    Attributes
    ----------
    report : RunReport
        The utterances that were aligned, and those that could not be used, with the reasons.
    num_phones, num_gaussians : int
    history : tuple of dict
        A row for each pass: pass, method, gaussians, log_likelihood_per_frame, frames, utterances.
    """

    report: RunReport
    num_phones: int = 0
    num_gaussians: int = 0
    history: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)


def flat_start(
    options: FlatStartOptions,
    *,
    runner: Runner | None = None,
    progress: Progress = silent,
    log: Log = silent,
    note: Log = silent,
) -> FlatStartResult:
    """Train monophone HMMs with Gaussian mixtures, and align the utterances; write both to `options.out`.

    A run that was stopped goes on from there.

    Parameters
    ----------
    options : FlatStartOptions
    runner : Runner, optional
        One thread by default.
    progress : callable
        Called as ``progress(utterances done, utterances, stage="flat start")``, then with "align".
    log : callable
        Receives a line for each pass.
    note : callable
        Receives remarks on the dictionary and on phones without frames.

    Returns
    -------
    FlatStartResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the files that all utterances share; the report lists faults of single utterances.

    Examples
    --------
    ``dictionary = SpokenDictionary(dict="dict")``

    ``flat_start(FlatStartOptions(features="train.scp", words="words.mlf", dictionary=dictionary, out="flat"))``
    """
    out = options.out
    report = RunReport("utterances")
    for name in RESULTS:
        require_writable(out / name, [options.features, options.words, options.dictionary.dict])
    dictionary = options.dictionary.read(note)
    utterances = _read_utterances(options, report)
    with held_alone(out / "flatstart.lock", out):
        start = FlatStart(utterances, dictionary, options.training, runner or thread_runner(1), report)
        if not start.num_used:
            report.write(out / REPORT)
            return FlatStartResult(report)
        phones = start.topology.models
        silence = start.topology.silence
        if SHORT_PAUSE in phones and silence != SHORT_PAUSE:
            note(
                f"'{SHORT_PAUSE}' in the dictionary is trained as a phone of at least three frames; expected "
                "pronunciations without it, since silence between words is optional"
            )

        training = start.train(
            out / STATE, log, lambda training: log(start.last_pass(training)), staged(progress, "flat start")
        )
        write_lines(out / PASSES, map(json.dumps, training.history))
        draw_passes(training.history, out / PICTURE)
        unseen = _write_results(start, training, out, staged(progress, "align"))
        if unseen:
            report.remarks["phones without frames in the alignment"] = " ".join(unseen)
            note(f"no frames of {', '.join(unseen)} in the alignment")
        _write_feature_record(Path(start.survey.used[0][0].path), out / FEATURES)
    report.write(out / REPORT)
    return FlatStartResult(report, len(phones), len(training.models.weights), training.history)


def _read_utterances(options: FlatStartOptions, report: RunReport) -> list[TrainingUtterance]:
    """Return the utterances of the feature list that have words; the others go to the report."""
    entries = read_feature_list(options.features)
    transcripts = read_mlf(options.words)
    utterances = []
    for entry in entries:
        name = f"{entry.key}.lab"  # an extension to be cut, since keys may contain dots
        labels = transcripts.lookup(name)
        if labels is None:
            report.fail(entry.key, f"{options.words}: no transcript; {transcripts.expected_entry(name)}")
        elif not labels:
            report.fail(entry.key, f"{transcripts.where(name)}: no words; expected at least one")
        else:
            path = str(Path(entry.path).absolute())
            words = tuple(label.name for label in labels)
            utterances.append(TrainingUtterance(entry.key, path, entry.start, entry.end, words))
    return utterances


def _write_results(start: FlatStart, training: Training, out: Path, progress: Progress) -> list[str]:
    """Write models, lists and the alignment; return the phones that the alignment lacks."""
    models = start.hmm_set(training)
    write_mmf(out / "hmmdefs", models)
    write_lines(out / "states.list", training.models.states)
    write_lines(out / "phones.list", start.topology.models)
    transitions = distil(models).transitions
    assert transitions is not None
    write_transitions(out / "transitions", transitions)
    aligned_states: set[str] = set()
    short = names_for_any_path([utterance.name for utterance, _ in start.survey.used])

    def entries() -> Iterator[tuple[str, list[Label]]]:
        for name, labels in start.align(training, progress):
            aligned_states.update(label.name for label in labels)
            yield f"*/{short[name]}.lab", labels

    write_mlf(out / "states.mlf", entries())
    return [phone for phone, states in start.topology.models.items() if aligned_states.isdisjoint(states)]


def _write_feature_record(features: Path, path: Path) -> None:
    """Write how a feature file was computed, if more is known than its header says."""
    header = read_htk_header(features)
    record = SideFiles().record(features, kind_name(header.kind), header.period)
    if record.is_detailed:
        write_side_file(path, record)
    else:
        path.unlink(missing_ok=True)
