r"""Import recordings with transcripts: write the lists that the other commands read, and a report on the data.

worked example: `data` contains recordings, with their words in files of the same name beside them,
  data/fash/cen1-fash-b.wav    data/fash/cen1-fash-b.txt    data/mmxg/cen7-mmxg-b.wav ...
Then
  argonaut import folder data --out exp/corpus
writes to exp/corpus
  audio.scp     lines NAME=PATH, or NAME=PATH[first,last] for a part of a file, in samples
  words.mlf     the words of each utterance
  speakers      lines `NAME SPEAKER`
  hcopy.list    list for `argonaut hcopy -S`, with feature files in exp/corpus/features
  report.txt    durations, sample rates, speakers, and utterances that are lost, silent, clipped or too short
  report.json   the same for programs
  recordings    the names of the recordings of Kaldi and lhotse
  audio         audio that was in archives of Kaldi
and ends with
  utterances: 948 done, 0 skipped, 0 failed
With --dict FILE, the words without a pronunciation are in the report and, most frequent first, in unknown.words.
With --g2p MODEL as well, their pronunciations are guessed and written, the most doubtful first, to guessed.dict, for
review: argonaut g2p trains such models.  Another import keeps the pronunciations of words in this file.

kinds of corpora:
  folder  recordings with .lab, .txt or .TextGrid files beside them; the folder of a recording names its speaker
  kaldi   a Kaldi data directory: wav.scp, segments, text, utt2spk
  htk     an SCP of audio files, with --words MLF: their words, or an alignment that has them
  lhotse  a directory with manifests of recordings and supervisions (.jsonl, .jsonl.gz), or that of supervisions
  table   CSV, TSV or JSON lines with the columns path, text and speaker, such as Common Voice's validated.tsv;
          LJSpeech's metadata.csv
Relative paths in manifests begin at the directory of the manifest.  Commands in manifests are never run.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

from readers.errors import ConfigError
from recipes.cli.console import progress_display, show_losses
from recipes.cli.dictionaries import show_note
from recipes.cli.machines import add_machine_options, check_machines, open_runner

GUESSED = "guessed.dict"  # stays, since it may be corrected by hand
RESULTS = ("hcopy.list", "unknown.words", "report.txt", "report.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from readers.corpora.importing import KINDS
    from readers.corpora.words import PUNCTUATION
    from readers.dictionaries.case import CASES
    from readers.dictionaries.forms import FORMS

    parser.add_argument("kind", metavar="KIND", choices=tuple(KINDS), help=f"kind of corpus: {', '.join(KINDS)}")
    parser.add_argument("source", metavar="SOURCE", help="the folder, directory or manifest")
    parser.add_argument("--out", metavar="DIR", required=True, help="directory for the lists and the report")
    parser.add_argument(
        "--headers",
        action="store_true",
        help="read only the headers of audio files; damaged, clipped and silent ones are not found",
    )
    words = parser.add_argument_group("words")
    words.add_argument(
        "--words", metavar="MLF", help="of an SCP: the words of its utterances, or an alignment with words"
    )
    words.add_argument("--case", choices=CASES, default="keep", help="case of the words (keep)")
    words.add_argument(
        "--punctuation",
        choices=PUNCTUATION,
        help="strip or keep punctuation marks at both ends of words (keep for kaldi, lhotse and htk, else strip)",
    )
    words.add_argument(
        "--dict", metavar="FILE", help="pronunciation dictionary of any form; lists the words that it lacks"
    )
    words.add_argument("--dict-format", choices=("auto", *FORMS), default="auto", help="form of --dict (auto)")
    words.add_argument(
        "--g2p", metavar="MODEL", help="guess the pronunciations of words that --dict lacks; write guessed.dict"
    )
    speakers = parser.add_argument_group("speakers")
    speakers.add_argument(
        "--speaker-characters",
        type=int,
        default=0,
        metavar="N",
        help="of a folder or an SCP: the first N characters of a file name are the speaker, not the name of the folder",
    )
    add_machine_options(parser.add_argument_group("machines"))


def run(arguments: argparse.Namespace) -> int:
    from readers.common.faults import counted
    from readers.common.files import require_writable, write_lines
    from readers.corpora import directory
    from readers.corpora.examination import examine
    from readers.corpora.importing import import_corpus
    from readers.dictionaries.forms import read_any_dictionary
    from readers.htk.scp import write_pairs

    if arguments.g2p and not arguments.dict:
        raise ConfigError("command line: --g2p without --dict; expected the dictionary to which guesses are added")
    check_machines(arguments)
    out = Path(arguments.out)
    owned = [
        out / name for name in (directory.AUDIO, directory.WORDS, directory.SPEAKERS, directory.RECORDINGS, *RESULTS)
    ]
    for path in (*owned, out / GUESSED):
        require_writable(path, [arguments.source, arguments.dict, arguments.g2p, arguments.words])
    entries = read_any_dictionary(arguments.dict, arguments.dict_format, None, show_note) if arguments.dict else []
    phones = fewest_phones(entries)
    with progress_display("import") as show:
        corpus = import_corpus(
            arguments.kind,
            arguments.source,
            case=arguments.case,
            punctuation=arguments.punctuation,
            known=phones,
            speaker_characters=arguments.speaker_characters,
            words=arguments.words,
            store=out / "audio",
            progress=show,
        )
    guesses = guess(corpus, entries, arguments.g2p, out / GUESSED) if arguments.g2p else None
    guessed = fewest_phones(guesses.entries) if guesses else {}
    runner = open_runner(arguments)
    try:
        with progress_display("read audio", runner=runner) as show:
            known = phones if arguments.dict else None
            corpus, examination = examine(corpus, known, guessed, not arguments.headers, show, runner)
    finally:
        runner.close()
    report = corpus.report
    for path in owned:  # nothing of an earlier import remains
        path.unlink(missing_ok=True)
    if report.num_done:
        directory.write_corpus(corpus, out)
        write_pairs(out / "hcopy.list", directory.feature_pairs(out, out / "features"))
        if examination.unknown is not None:
            write_lines(out / "unknown.words", (f"{word} {count}" for word, count in examination.unknown.items()))
        if guesses:
            guesses.write(out / GUESSED)
            report.remarks["pronunciations"] = guesses.summary(out / GUESSED)
            if guesses.without:
                word, reason = guesses.without[0]
                report.remarks["not guessed"] = f"{counted(len(guesses.without), 'word')}, such as {word}: {reason}"
    report.write(out / "report.txt")
    write_json(out / "report.json", report, examination, guesses)
    show_losses(report, out / "report.txt", arguments.verbose, arguments.source)
    for name, text in report.remarks.items():
        if arguments.verbose or not name.startswith("speaker "):
            print(f"{name}: {text}")
    print(report.summary())
    return report.exit_status


def fewest_phones(entries: Iterable) -> dict[str, int]:
    """Return the words of pronunciations with the number of phones of their shortest ones."""
    found: dict[str, int] = {}
    for entry in entries:
        found[entry.word] = min(len(entry.phones), found.get(entry.word, len(entry.phones)))
    return found


def guess(corpus, entries: list, path: str, earlier: Path):
    """Return the Guesses of a model for the words of a corpus that a dictionary lacks.

    Words in the file of an earlier import keep their pronunciations, which may have been corrected.
    """
    from decoder.g2p import G2P, complete_dictionary
    from readers.dictionaries.forms import read_any_dictionary

    words = dict.fromkeys(word for utterance in corpus.utterances for word in utterance.words or ())
    known = {entry.word for entry in entries}
    kept = read_any_dictionary(earlier, "htk") if earlier.exists() and earlier.stat().st_size else []
    kept = [entry for entry in kept if entry.word in words and entry.word not in known]
    guesses = complete_dictionary([*entries, *kept], words, G2P.load(path))
    guesses.entries.extend(kept)
    return guesses


def write_json(path: Path, report, examination, guesses) -> None:
    """Write the facts about a corpus, the utterances that were lost, and the guessed words."""
    import json

    from readers.common.files import atomic_write

    lost = [{"name": name, "outcome": outcome, "reason": reason} for name, outcome, reason in report.lost]
    facts = examination.as_json() | {"lost": lost, "guessed": guesses.words if guesses else []}
    with atomic_write(path, "w") as file:
        json.dump(facts, file, ensure_ascii=False, indent=1)
        file.write("\n")
