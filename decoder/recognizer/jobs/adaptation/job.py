"""The job that adapts a bundle to a text, to speech, or to both: dictionary, language model, graph and network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from acoustic.scoring.opening import open_scorer
from acoustic.scoring.window_scorer import WindowScorer
from decoder.alignment.aligner import Aligner
from decoder.g2p.completion import Guesses
from decoder.graph.transcript import TranscriptGraphs
from decoder.recognizer.assembly import open_bundle, recognising_network, transcript_graphs
from decoder.recognizer.bundle import LM, MODEL, Bundle
from decoder.recognizer.description import MAX_TEXT, BundleDescription
from decoder.recognizer.jobs.adaptation.language import TextFit
from decoder.recognizer.jobs.adaptation.network import AdaptedNetwork, adapt_network, require_network
from decoder.recognizer.jobs.adaptation.options import AdaptOptions
from decoder.recognizer.jobs.adaptation.speech import AdaptationSpeech, SpokenUtterance
from decoder.recognizer.jobs.adaptation.text import AdaptationText, read_adaptation_text
from decoder.recognizer.jobs.adaptation.words import AdaptedWords, adapt_words, require_phones
from decoder.recognizer.packing import require_bundle_path, rewrite
from decoder.scoring.bootstrap import error_rate_interval
from decoder.scoring.error_counts import ScoringResult, score
from decoder.search.batch import in_order
from decoder.search.decoder import Decoder
from readers.common.arrays import Float32Array
from readers.common.environment import program_version
from readers.common.faults import counted
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport, silent
from readers.common.temporary import scratch_directory
from readers.errors import ConfigError

BEFORE, WORDS, NETWORK = "before", "words", "network"  # what is measured


@dataclass(frozen=True)
class SpeechFit:
    """How the adaptation to speech came out.

    Attributes
    ----------
    report : RunReport
        The utterances of the training that were aligned, and those that were not, with the reasons.
    network : AdaptedNetwork
    seconds, held_out_seconds : float
        Of the utterances of the training, and of those that were held out.
    errors : dict of str to ScoringResult
        Word errors of the utterances that were held out: "before", with the new "words", and with the new "network",
        too; without the steps that were not taken, and empty if nothing was held out.
    speaker_of : dict of str to str
        The speaker of each utterance that was held out.
    chosen : {"before", "words", "network"}
        What the adapted bundle has.
    """

    report: RunReport
    network: AdaptedNetwork
    seconds: float
    held_out_seconds: float
    errors: Mapping[str, ScoringResult] = field(repr=False)
    speaker_of: Mapping[str, str] = field(repr=False)
    chosen: str

    def interval(self, name: str) -> tuple[float, float]:
        """Return the 95 % interval of a word error rate in percent, over speakers or, of a single one, utterances."""
        several = len({*self.speaker_of.values()}) > 1
        return error_rate_interval(self.errors[name], self.speaker_of.__getitem__ if several else str)


@dataclass(frozen=True)
class AdaptResult:
    """An adapted bundle.

    Attributes
    ----------
    bundle : Bundle
    text : AdaptationText or None
        None with `keep_words`.
    added : tuple of str
        Words that the bundle could not recognise before, in alphabetical order.
    guesses : Guesses
        Pronunciations that were guessed, and words for which that failed.
    guessed : Path
        The dictionary with the guesses, for review; written if there are any.
    weight : float
        Weight of the text in the language model, 0 to 1.
    before, after : TextFit or None
        How well the sentences that were held out suit the bundle and one that is adapted to the other sentences; None
        for a short text, of which none is held out.
    speech : SpeechFit or None
        None without a corpus.
    """

    bundle: Bundle
    text: AdaptationText | None = field(repr=False)
    added: tuple[str, ...]
    guesses: Guesses = field(repr=False)
    guessed: Path
    weight: float
    before: TextFit | None = None
    after: TextFit | None = None
    speech: SpeechFit | None = None


def adapt(options: AdaptOptions, *, progress: Progress = silent, log: Log = silent, note: Log = silent) -> AdaptResult:
    """Adapt a bundle to a corpus, a text or both, and write it to `options.output`.

    A text, and the transcripts of a corpus, give it words, a language model and a graph; the speech of a corpus trains
    the network further.  A part of the corpus is held out and takes no part in this.  On it, what is better than before
    is chosen: an adapted network that makes more errors than that of the bundle is not taken.  All else stays as it is.

    Parameters
    ----------
    options : AdaptOptions
    progress : callable
        Called as ``progress(done, total, stage="align", unit="recordings")``, then with "train" and "test".
    log : callable
        Receives a line for each step.
    note : callable
        Receives doubts about the text and the dictionary.

    Returns
    -------
    AdaptResult

    Raises
    ------
    ArgonautError, OSError
        For a fault of a file, and for a bundle without what a graph is made of: a language model, a dictionary and
        the tables of the models.

    Examples
    --------
    ``adapt(AdaptOptions(bundle="en", texts=TextOptions(text="notes.txt"), output="mine.argo")).added``

    ``adapt(AdaptOptions(bundle="en", corpus="recordings", output="mine.argo")).speech.errors``
    """
    dictionary = options.dictionary
    guessed = Path(f"{options.output}.guessed.dict")
    bundle = Bundle.open(options.bundle)
    inputs = [bundle.path, *options.texts.files, options.corpus, dictionary.dict, dictionary.g2p]
    require_bundle_path(options.output, bundle.is_compact, inputs)
    given = dictionary.read(note)
    if options.corpus is not None:
        require_network(bundle)
    keeps_words = options.speech.keep_words
    if LM not in bundle.parts and not keeps_words:
        options.speech.require(
            "keep_words",
            bool(options.texts.files),
            f"is not given, and {bundle.path} has no language model for new words; expected it, for the network alone",
        )
        raise ConfigError(f"{bundle.path}: no language model; expected one in the bundle, for a mixture with the text")
    graphs = transcript_graphs(bundle, recognising_network(bundle))
    require_phones(given, graphs, dictionary.dict)
    known = {entry.word for entry in (*(graphs.dictionary or ()), *given)}
    speech = None if options.corpus is None else AdaptationSpeech(options.corpus, options.speech, known)
    text = None if keeps_words else _text(options, speech, known, note)
    words = None
    if text is not None:
        log(f"text: {counted(len(text.sentences), 'sentence')}, {counted(text.words.total(), 'word')}")
        words = adapt_words(options, bundle, graphs, given, text, _source(options), log)
        if words.guesses.entries:
            require_writable(
                guessed, [options.bundle, options.output, *options.texts.files, options.corpus, dictionary.dict]
            )
    fit = None if speech is None else _adapt_to_speech(options, bundle, graphs, speech, words, progress, log)
    new = rewrite(
        bundle,
        _described(bundle.description, options, text, words.added if words else (), fit),
        options.output,
        None if words is None else words.words,
        fit.network.model if fit is not None and fit.chosen == NETWORK else None,
    )
    if words is None:
        return AdaptResult(new, None, (), Guesses(), guessed, 0.0, speech=fit)
    if words.guesses.entries:
        words.guesses.write(guessed)
    return AdaptResult(
        new, text, words.added, words.guesses, guessed, words.weight, words.before, words.after, speech=fit
    )


def _text(options: AdaptOptions, speech: AdaptationSpeech | None, known: set[str], note: Log) -> AdaptationText:
    """Return the sentences of the files and of the transcripts."""
    transcripts = [] if speech is None else speech.transcripts
    if not options.texts.files:
        return AdaptationText(transcripts, "keep")
    text = read_adaptation_text(options.texts, known, options.speech.case, note)
    return replace(text, sentences=text.sentences + transcripts)


def _source(options: AdaptOptions) -> str:
    """Return the name of the text in messages."""
    return " + ".join(map(str, [path for path in (options.corpus, *options.texts.files) if path]))


def _adapt_to_speech(
    options: AdaptOptions,
    bundle: Bundle,
    graphs: TranscriptGraphs,
    speech: AdaptationSpeech,
    words: AdaptedWords | None,
    progress: Progress,
    log: Log,
) -> SpeechFit:
    """Adapt the network of a bundle, and count the errors of what is held out before and after."""
    front_end, decoder = open_bundle(bundle)
    if words is not None:
        graphs = transcript_graphs(bundle, recognising_network(bundle), words.words.dictionary)
    spoken = speech.align(front_end, Aligner(graphs), progress)
    training = [each for each in spoken if each.name not in speech.held_out and each.labels is not None]
    held_out = [each for each in spoken if each.name in speech.held_out]
    if not training:
        reasons = "; ".join(f"{name}: {reason}" for name, _, reason in speech.report.lost[:1])
        raise ConfigError(f"{options.corpus}: no utterance could be aligned; the first one, {reasons}")
    seconds = sum(each.seconds for each in training)
    held_out_seconds = sum(each.seconds for each in held_out)
    log(
        f"speech: {counted(len(training), 'utterance')}, {seconds / 60:.1f} minutes; "
        f"held out: {counted(len(held_out), 'utterance')}, {held_out_seconds / 60:.1f} minutes"
    )
    tests = [each for each in held_out if each.labels is not None]
    if held_out and not tests:
        log("held out: no utterance could be aligned; the epoch is chosen by the cross-entropy of the training")
    network = adapt_network(
        bundle, front_end.scorer, training, tests, options.speech,
        lambda done, total, **figures: progress(done, total, stage="train", unit="frames", **figures),
    )  # fmt: skip
    decoders = {BEFORE: decoder}
    if words is not None:
        new = words.words
        decoders[WORDS] = Decoder(new.graph, new.lm, decoder.options, new.cntkmap, f"{bundle.path}")
    scores = {name: [each.scores for each in held_out] for name in decoders}
    if network.model is not None:
        decoders[NETWORK] = decoders.get(WORDS, decoder)
        scorer = _scorer(bundle, network.model)
        scores[NETWORK] = [scorer.score(each.features) for each in held_out]
    errors = {}
    for name in decoders if held_out else ():
        errors[name] = _errors(decoders[name], held_out, scores[name])
        progress(len(errors), len(decoders), stage="test", unit="systems")
    return SpeechFit(
        speech.report,
        network,
        seconds,
        held_out_seconds,
        errors,
        {each.name: each.speaker for each in held_out},
        _chosen(decoders, errors),
    )


def _chosen(systems: Mapping[str, object], errors: Mapping[str, ScoringResult]) -> str:
    """Return the last system, unless its network makes more errors than that of the bundle."""
    *others, last = systems
    if last == NETWORK and errors and errors[last].total.num_errors > errors[others[-1]].total.num_errors:
        return others[-1]
    return last


def _scorer(bundle: Bundle, model: bytes) -> WindowScorer:
    """Return the scorer of another model of a bundle."""
    about = bundle.description
    with scratch_directory() as directory:
        path = directory / MODEL
        path.write_bytes(model)
        return open_scorer(path, about.output, about.window, ignore_mismatch=True)


def _errors(decoder: Decoder, utterances: Sequence[SpokenUtterance], scores: Sequence[Float32Array]) -> ScoringResult:
    """Recognise utterances and count the errors."""
    results = in_order(decoder.decode, scores)
    hypotheses = {}
    for utterance, (_, result) in zip(utterances, results, strict=True):
        hypotheses[utterance.name] = () if isinstance(result, Exception) else result.text
    return score({utterance.name: utterance.words for utterance in utterances}, hypotheses)


def _described(
    description: BundleDescription,
    options: AdaptOptions,
    text: AdaptationText | None,
    added: Sequence[str],
    fit: SpeechFit | None,
) -> BundleDescription:
    """Return the description of the adapted bundle, whose errors are not known."""
    files = ", ".join(path.name for path in (options.corpus, *options.texts.files) if path)
    sizes = []
    if text is not None:
        sizes = [counted(len(text.sentences), "sentence"), counted(text.words.total(), "word"), f"{len(added)} new"]
    if fit is not None and fit.chosen == NETWORK:
        sizes.append(f"{fit.seconds / 60:.1f} minutes of speech")
    line = f"adapted to {files}"[: MAX_TEXT // 2] + f": {', '.join(sizes) or 'nothing'}"
    line = "".join(character if character.isprintable() else "?" for character in line)
    card = replace(description.card, data=(*description.card.data, line))
    return replace(description, card=card, errors=(), created_by=f"argonaut {program_version()}")
