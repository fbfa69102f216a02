"""The lists that the stages of the recipe read."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from readers.common.faults import counted
from readers.common.files import write_lines
from readers.common.report import RunReport
from readers.corpora.corpus import Corpus, Utterance
from readers.corpora.directory import feature_pairs, read_corpus, write_corpus
from readers.dictionaries.phones import change_phones
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation, write_dictionary
from readers.htk.mlf import read_mlf
from readers.htk.scp import frame_counts, read_scp, write_feature_list, write_pairs, write_scp
from recipes.an4.prepare import WARPS, warp_name, write_warped_config, write_words
from recipes.background import background_files, join_mlfs, label_background
from recipes.cli.console import show_losses, show_note
from recipes.own import data
from recipes.own.alignments import read_alignment
from recipes.own.options import OwnOptions
from recipes.own.sets import Sets, divide, read_names

CEPSTRA, CHANNELS = "cepstra", "channels"


def write_lists(options: OwnOptions, corpus_directory: Path, out: Path, configs: Path, knows_dev: bool = True) -> int:
    """Divide the corpus and write everything that later stages read; return 1 if utterances are left out.

    knows_dev: whether the vocabulary has the words of the development set.
    """
    corpus = data.choose_channel(read_corpus(corpus_directory), options.channel, corpus_directory)
    write_corpus(corpus, out / "lists")
    spoken = [utterance for utterance in corpus.utterances if utterance.words]
    if not spoken:
        raise FormatError(f"{corpus_directory}: no transcripts; expected words of the utterances")
    entries = options.dictionary.read(show_note)
    if options.alignments:  # HTK's dictionaries end words with a short pause; silence between words is optional here
        entries, _ = change_phones(entries, lambda phone: () if phone in options.silence else (phone,))
    sets = divide(spoken, read_names(options.dev_speakers), read_names(options.test_speakers))
    pronounced = {entry.word for entry in entries}
    texts = (*sets.train, *sets.dev) if knows_dev else sets.train
    words = {word for utterance in texts for word in utterance.words or ()}
    if options.text is not None:
        counts = data.write_text(options.text, pronounced, out / "lm" / "text.txt")
        frequent = [w for w, _ in counts.most_common() if w in pronounced or options.dictionary.g2p is not None]
        words |= set(frequent[: options.text_words])
    if options.dictionary.g2p is not None:
        guesses = options.dictionary.guess(entries, sorted(words), out / "guessed.dict", print)
        entries += guesses.for_decoding()
        pronounced = {entry.word for entry in entries}
    used = data.usable_entries(entries, options.dictionary.dict, None if options.lm else words)
    vocabulary = {entry.word for entry in used}
    report = RunReport("utterances for training and tuning")
    sets = replace(sets, train=tuple(data.without_unknown_words(sets.train, vocabulary, report)))
    known_dev = data.without_unknown_words(sets.dev, vocabulary, report)
    unknown = data.write_unknown_words(spoken, pronounced, out / "reports" / "unknown_words")
    if unknown:
        some = ", ".join(word for word, _ in unknown.most_common(5))
        print(f"without a pronunciation: {len(unknown)}, such as {some}; all are in {out / 'reports/unknown_words'}")
    rate = options.rate or data.sample_rate(corpus, spoken)
    seconds = {name: sum(map(corpus.seconds, utterances)) for name, utterances in sets.items()}
    check_amount(corpus_directory, seconds, replace(sets, dev=tuple(known_dev)), options.min_minutes)
    for name, utterances in sets.items():
        print(f"{name}: {counted(len(utterances), 'utterance')}, {seconds[name] / 60:.1f} minutes")
    print(f"{sets.by}; features of audio at {rate} Hz", flush=True)
    rates = {name: data.unknown_rate(utterances, vocabulary) for name, utterances in sets.items() if name != "train"}
    shown = ", ".join(f"{rate:.1f} % of the words of {name}" for name, rate in rates.items())
    print(f"vocabulary: {len(vocabulary)} words, without {shown}", flush=True)

    if options.alignments:  # before the features, which take much longer
        check_alignments(options.alignments, used, options.silence, corpus, (*sets.train, *known_dev), out)
    write_dictionary(out / "words.dict", used)
    write_lines(out / "lm" / "vocabulary", dict.fromkeys(entry.word for entry in used))
    known_sets = {"train": sets.train, "known": (*sets.train, *known_dev)}
    for name, utterances in ({"dev": sets.dev, "test": sets.test} | known_sets).items():
        write_words(utterances, out / "labels" / f"{name}.words.mlf")
    for name, utterances in ({"dev": sets.dev} | known_sets).items():
        write_lines(out / "lm" / f"{name}.txt", (" ".join(utterance.words or ()) for utterance in utterances))
    write_configs(configs, rate, out / "config")
    write_hcopy_lists(sets, out)
    frames = round(seconds["train"] * data.FRAMES_PER_SECOND)
    data.Facts(rate, frames).write(out / "data.json")
    report.write(out / "reports" / "lists")
    show_losses(report, out / "reports" / "lists", 0)
    print(report.summary())
    return report.exit_status


def check_alignments(
    path: Path,
    entries: list[Pronunciation],
    silences: Sequence[str],
    corpus: Corpus,
    utterances: Iterable[Utterance],
    out: Path,
) -> None:
    """Report which given alignments cannot be used; raise FormatError if none can."""
    lengths = {utterance.name: round(corpus.seconds(utterance) * data.FRAMES_PER_SECOND) for utterance in utterances}
    _, report = read_alignment(path, entries, silences, lengths)
    report.write(out / "reports" / "lists.alignments")
    show_losses(report, out / "reports" / "lists.alignments", 0)


def check_amount(where: Path, seconds: dict[str, float], sets: Sets, least: float) -> None:
    """Raise FormatError for too little speech."""
    minutes = sum(seconds.values()) / 60
    if minutes < least:
        raise FormatError(
            f"{where}: {minutes:.1f} minutes of speech with transcripts and pronunciations; expected at least "
            f"{least:g}; --min-minutes accepts less"
        )
    empty = [name for name, utterances in sets.items() if not utterances]
    if empty:
        raise FormatError(
            f"{where}: no utterance of the {empty[0]} set has pronunciations of all its words; expected some"
        )


def write_configs(configs: Path, rate: int, out: Path) -> None:
    """Write the configurations of features for a sample rate, cepstra and mel channels without the mean of speech."""
    kind = f"{rate // 1000}k.hcopy"
    write_warped_config(configs / f"fbank{kind}", 1.0, out / f"{CHANNELS}.hcopy")
    write_warped_config(configs / f"mfcc{kind}", 1.0, out / "static.hcopy")


def write_hcopy_lists(sets: Sets, out: Path) -> None:
    """Write a list for `argonaut hcopy` for each configuration, and that of the speech whose mean is needed."""
    train = {utterance.name for utterance in sets.train}
    listed = train | {utterance.name for utterance in sets.dev}
    everything = listed | {utterance.name for utterance in sets.test}
    lists = {warp_name(warp): ("fbank", everything if warp == 1.0 else train) for warp in WARPS}
    for name, (extension, names) in (lists | {CEPSTRA: ("mfc", listed)}).items():
        pairs = feature_pairs(out / "lists", out / "features" / name, extension)
        chosen = [(source, target) for source, target in pairs if Path(target).stem in names]
        write_pairs(out / "lists" / f"{name}.hcopy.list", chosen)
        if name == "plain":
            speech = [(source, target) for source, target in chosen if Path(target).stem in train]
            write_pairs(out / "lists" / "speech.list", speech)


def write_feature_lists(out: Path) -> Iterator[tuple[str, RunReport]]:
    """Write the lists of feature files that exist; yield the name and the report of each.

    train, dev, test: for the network, train with all copies; known: training and development set without copies and
    without utterances with words that have no pronunciation; valid: of these, the development set; cepstra: known in
    cepstra; train.cepstra: cepstra of the training set.
    """
    dev, test, known_names = (list(read_mlf(out / "labels" / f"{name}.words.mlf")) for name in ("dev", "test", "known"))
    train = training_names(out)
    held_out = set(dev)

    def file(copy: str, name: str, extension: str = "fbank") -> Path:
        return out / "features" / copy / f"{name}.{extension}"

    copies = [warp_name(warp) for warp in WARPS]
    lists = {
        "train": [(f"{copy}/{name}", file(copy, name)) for copy in copies for name in train],
        "dev": [(name, file(copies[0], name)) for name in dev],
        "test": [(name, file(copies[0], name)) for name in test],
        "known": [(name, file(copies[0], name)) for name in known_names],
        "valid": [(name, file(copies[0], name)) for name in known_names if name in held_out],
        "cepstra": [(name, file(CEPSTRA, name, "mfc")) for name in known_names],
        "train.cepstra": [(name, file(CEPSTRA, name, "mfc")) for name in train],
    }
    for name, files in lists.items():
        yield name, write_feature_list(out / "lists" / f"{name}.scp", files)


def write_tuning_list(out: Path, minutes: float) -> None:
    """Write tune.scp: utterances of the development set, evenly spread, that last about as long, or all of it."""
    entries = read_scp(out / "lists" / "dev.scp")
    frames = sum(frame_counts(out / "lists" / "dev.scp").values())
    every = max(round(frames / (60 * minutes * data.FRAMES_PER_SECOND)), 1)
    write_scp(out / "lists" / "tune.scp", entries[::every])


def training_names(out: Path) -> list[str]:
    """Return the utterances of the training set that have pronunciations, in their order."""
    dev, known_names = (list(read_mlf(out / "labels" / f"{name}.words.mlf")) for name in ("dev", "known"))
    held_out = set(dev)
    return [name for name in known_names if name not in held_out]


def write_copy_source(out: Path, path: Path) -> None:
    """Write the list of the training set's recordings, of which copies are made."""
    recordings = {entry.key: entry for entry in read_scp(out / "lists" / "audio.scp")}
    write_scp(path, [recordings[name] for name in training_names(out)])


def write_training_lists(out: Path, alignment: Path, copies: Path, prefixes: Iterable[str], silence: str) -> RunReport:
    """Write the features and labels that the final network learns: lists/training.scp and training.mlf in `copies`.

    They are those of the training set, of its copies, which `argonaut augment` has written with these prefixes, and of
    recordings without speech.
    """
    background = out / "background"
    files = [(entry.key, Path(entry.path)) for entry in read_scp(out / "lists" / "train.scp")]
    names = [f"{prefix}{name}" for prefix in prefixes for name in training_names(out)]
    files += [(name, copies / "features" / f"{name}.fbank") for name in names]
    report = write_feature_list(out / "lists" / "training.scp", [*files, *background_files(background)])
    labels = copies / "states.mlf", label_background(background, alignment, silence)
    join_mlfs(copies / "training.mlf", alignment, *labels)
    return report
