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
and ends with
  utterances: 948 done, 0 skipped, 0 failed
With --dict FILE, the words without a pronunciation are in the report and, most frequent first, in unknown.words.

kinds of corpora:
  folder  recordings with .lab, .txt or .TextGrid files beside them; the folder of a recording names its speaker
  kaldi   a Kaldi data directory: wav.scp, segments, text, utt2spk
  lhotse  a directory with manifests of recordings and supervisions (.jsonl, .jsonl.gz), or that of supervisions
  table   CSV or TSV with the columns path, text and speaker, such as Common Voice's validated.tsv
Relative paths in manifests begin at the directory of the manifest.  Commands in manifests are never run.
"""

import argparse
from pathlib import Path

from recipes.cli.console import progress_display, show_losses

RESULTS = ("hcopy.list", "unknown.words", "report.txt", "report.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from readers.corpora.importing import KINDS
    from readers.corpora.words import CASES, PUNCTUATION
    from readers.dictionaries.forms import FORMS

    parser.add_argument("kind", metavar="KIND", choices=tuple(KINDS), help=f"kind of corpus: {', '.join(KINDS)}")
    parser.add_argument("source", metavar="SOURCE", help="the folder, directory or manifest")
    parser.add_argument("--out", metavar="DIR", required=True, help="directory for the lists and the report")
    words = parser.add_argument_group("words")
    words.add_argument("--case", choices=CASES, default="keep", help="case of the words (keep)")
    words.add_argument(
        "--punctuation",
        choices=PUNCTUATION,
        help="strip or keep punctuation marks at both ends of words (keep for kaldi and lhotse, else strip)",
    )
    words.add_argument(
        "--dict", metavar="FILE", help="pronunciation dictionary of any form; lists the words that it lacks"
    )
    words.add_argument("--dict-format", choices=("auto", *FORMS), default="auto", help="form of --dict (auto)")
    speakers = parser.add_argument_group("speakers")
    speakers.add_argument(
        "--speaker-characters",
        type=int,
        default=0,
        metavar="N",
        help="of a folder: the first N characters of a file name are the speaker, not the name of the folder",
    )


def run(arguments: argparse.Namespace) -> int:
    from readers.common.files import require_writable, write_lines
    from readers.corpora import directory
    from readers.corpora.examination import examine
    from readers.corpora.importing import import_corpus
    from readers.htk.scp import write_pairs

    out = Path(arguments.out)
    for name in (directory.AUDIO, directory.WORDS, directory.SPEAKERS, *RESULTS):
        require_writable(out / name, [arguments.source, arguments.dict])
    phones = fewest_phones(arguments.dict, arguments.dict_format) if arguments.dict else None
    with progress_display("import") as show:
        corpus = import_corpus(
            arguments.kind,
            arguments.source,
            case=arguments.case,
            punctuation=arguments.punctuation,
            known=phones or (),
            speaker_characters=arguments.speaker_characters,
            progress=show,
        )
    with progress_display("read audio") as show:
        corpus, examination = examine(corpus, phones, show)
    report = corpus.report
    if report.num_done:
        directory.write_corpus(corpus, out)
        write_pairs(out / "hcopy.list", directory.feature_pairs(out, out / "features"))
        if examination.unknown is not None:
            write_lines(out / "unknown.words", (f"{word} {count}" for word, count in examination.unknown.items()))
    report.write(out / "report.txt")
    write_json(out / "report.json", report, examination)
    show_losses(report, out / "report.txt", arguments.verbose, arguments.source)
    for name, text in report.remarks.items():
        if arguments.verbose or not name.startswith("speaker "):
            print(f"{name}: {text}")
    print(report.summary())
    return report.exit_status


def fewest_phones(path: str, form: str) -> dict[str, int]:
    """Return the words of a dictionary with the number of phones of their shortest pronunciations."""
    from readers.dictionaries.forms import read_any_dictionary

    found: dict[str, int] = {}
    for entry in read_any_dictionary(path, form):
        found[entry.word] = min(len(entry.phones), found.get(entry.word, len(entry.phones)))
    return found


def write_json(path: Path, report, examination) -> None:
    """Write the facts about a corpus and the utterances that were lost."""
    import json

    from readers.common.files import atomic_write

    lost = [{"name": name, "outcome": outcome, "reason": reason} for name, outcome, reason in report.lost]
    with atomic_write(path, "w") as file:
        json.dump(examination.as_json() | {"lost": lost}, file, ensure_ascii=False, indent=1)
        file.write("\n")
