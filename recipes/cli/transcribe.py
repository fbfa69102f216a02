"""Recognise audio files with a bundle, and print or write the words.

worked example:
  argonaut transcribe en speech.wav
prints the words of speech.wav, and
  argonaut transcribe en recordings/ --format srt -o subtitles
writes subtitles for every audio file in recordings and its folders, to files of the same names in subtitles.  `-` is
standard input:
  ffmpeg -i talk.mp4 -f wav - | argonaut transcribe en - --channel mix
  arecord -q -t wav -f S16_LE -r 16000 | argonaut transcribe en - --stream
Names that the bundle does not know are added in seconds:
  argonaut transcribe en call.wav --words contacts.txt

Audio may have any format that libsndfile reads (WAV, FLAC, Ogg, Opus, MP3, SPHERE, AIFF, ...).  A higher sample rate
than that of the training is resampled; a lower one needs --upsample, and several channels need --channel.
Formats: text; json, one object per line with words, times and confidences; the subtitles srt and vtt; ctm (NIST), mlf
(HTK) and textgrid (Praat) with the times of words; slf, the lattices in HTK's format.  With --phones, json and textgrid
have phones, too.
Without -o the result is printed; with several files, text is printed after the name of each file.
With --grammar, a recording that matches no sentence of the grammar is listed as rejected; json has `accepted`, the
`grammar_score`, and `slots` with what was said for each tag of a JSGF grammar.  With --stream, the words of rejected
utterances are not printed as text.
In folders, hidden files and files without an extension of audio are ignored; formats that cannot be read, such as .m4a,
are listed.
Exit status: 0 if every file was recognised, 1 if some were not or all are unfinished, 2 if none was.
"""

import signal
from typing import TYPE_CHECKING

from decoder.recognizer.jobs.options import TranscribeOptions
from readers.common.temporary import scratch_directory
from recipes.cli.command import Command, Console
from recipes.cli.console import SIGNAL_BASE, files_of, show_losses
from recipes.cli.live_display import JsonDisplay, TextDisplay

if TYPE_CHECKING:
    from decoder.recognizer.jobs.transcription import TranscribedFile


def run(options: TranscribeOptions, console: Console) -> int:
    from decoder.recognizer.jobs.transcription import transcribe

    if options.stream:
        return run_live(options, console)
    with console.progress() as progress:
        result = transcribe(
            options, take=Printer(options), progress=progress, log=console.tell, confidences=options.needs_lattice
        )
    show_losses(result.report, None, console.verbose)
    if options.output is not None and result.paths:
        console.tell(f"results: {files_of(result.paths, options.output)}")
    if result.num_files > 1 or options.output is not None:
        console.tell(result.report.summary())
    return result.report.exit_status


class Printer:
    """Prints transcripts one after the other."""

    def __init__(self, options: TranscribeOptions):
        self.options = options
        self.has_begun = False  # whether something has been printed

    def __call__(self, file: "TranscribedFile") -> None:
        """Print a transcript, unless it has been written."""
        from decoder.recognizer.jobs.transcript_files import FORMATS, transcript_lines

        form = self.options.format
        if self.options.output is not None:
            return
        lines = transcript_lines(form, file.recording, file.transcript, self.options.nbest)
        if lines is None:
            with scratch_directory() as directory:
                path = directory / f"transcript.{FORMATS[form]}"
                file.transcript.save(path, file.recording.name)
                text = path.read_text(encoding="utf-8")
        else:
            text = "".join(f"{line}\n" for line in lines)
        if form == "mlf" and self.has_begun:
            text = text.partition("\n")[2]  # the header stands once
        if form == "text" and file.num_files > 1:
            text = "".join(f"{file.recording.path}: {line}\n" for line in text.splitlines())
        self.has_begun = True
        print(text, end="", flush=True)


def run_live(options: TranscribeOptions, console: Console) -> int:
    from decoder.recognizer.jobs.live import transcribe_live
    from readers.common.jobs.stop_signals import stopping_signal

    display = JsonDisplay() if options.format == "json" else TextDisplay(times=False)
    result = transcribe_live(options, take=display, log=console.tell, confidences=options.needs_lattice)
    show_losses(result.report, None, console.verbose)
    display.close(result.report, result.num_frames, result.real_time_factor)
    stopped = stopping_signal()
    return result.report.exit_status if stopped == signal.SIGINT else SIGNAL_BASE + stopped


COMMAND = Command("transcribe", TranscribeOptions, run)
