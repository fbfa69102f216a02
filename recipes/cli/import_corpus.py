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
  folder  recordings with .lab, .txt, .TextGrid or .eaf (ELAN) files beside them, in folders that name the speakers
  kaldi   a Kaldi data directory: wav.scp, segments, text, utt2spk
  htk     an SCP of audio files, with --words MLF: their words, or an alignment that has them
  lhotse  a directory with manifests of recordings and supervisions (.jsonl, .jsonl.gz), or that of supervisions
  table   CSV, TSV or JSON lines with the columns path, text and speaker, such as Common Voice's validated.tsv;
          LJSpeech's metadata.csv
Relative paths in manifests begin at the directory of the manifest.  Commands in manifests are never run.
"""

from decoder.g2p.import_job import REPORT, ImportOptions, import_recordings
from recipes.cli.command import Command, Console
from recipes.cli.console import show_losses


def run(options: ImportOptions, console: Console) -> int:
    with console.runner() as runner, console.progress(runner=runner) as progress:
        report = import_recordings(options, runner=runner, progress=progress, note=console.note).report
    show_losses(report, options.out / REPORT, console.verbose, options.source)
    for name, text in report.remarks.items():
        if console.verbose or not name.startswith("speaker "):
            print(f"{name}: {text}")
    print(report.summary())
    return report.exit_status


COMMAND = Command("import", ImportOptions, run, machines="threads")
