"""Make copies of recordings for training: other speeds and volumes, noise, babble, reverberation.

worked example: `corpus` is a directory with audio.scp and, if there are any, words.mlf and speakers, as
`argonaut import` writes it; noises.list and rooms.list have the path of an audio file on each line.
  argonaut augment corpus --speed 0.9,1.1 --noise noises.list --babble corpus --reverb rooms.list --out corpus.aug
writes to corpus.aug
  audio/        the copies as FLAC: sp0.9-NAME, sp1.1-NAME, noise1-NAME, babble1-NAME, rvb1-NAME
  audio.scp     the recordings and their copies
  words.mlf     their words
  speakers      their speakers; as in Kaldi, sp0.9-SPEAKER is another speaker
  report        the copies that could not be made, with the reason
  augment.json  the settings
and ends with
  copies: 4415 done, 0 skipped, 0 failed
With --world 2, there are two multi-condition copies: some in a simulated room, some with noise, hum, music or (with
--babble) voices, some over a telephone, all with another level, some clipped.
In place of `corpus` there may be a list of audio files, with lines `PATH`, `NAME=PATH` or `NAME=PATH[first,last]`.

With -C hcopy.config it also writes hcopy.list, for `argonaut hcopy -C hcopy.config -S corpus.aug/hcopy.list`, and with
--states states.mlf, an alignment of the recordings, states.mlf for the recordings and copies.  The alignment of a copy
with another speed is stretched: a frame has the label of the nearest frame of the recording.
The same command, with any number of threads or machines, makes the same copies; after an interruption it continues.
Copies have one channel: with --channel mix, hcopy needs --channel mix for the recordings themselves.
"""

from features.augmentation.job import REPORT, AugmentOptions, augment
from recipes.cli.command import Command, Console
from recipes.cli.console import show_losses


def run(options: AugmentOptions, console: Console) -> int:
    with console.runner() as runner, console.progress("recordings", runner) as progress:
        report = augment(options, runner=runner, progress=progress).report
    show_losses(report, options.out / REPORT, console.verbose, options.source)
    print(report.summary())
    return report.exit_status


COMMAND = Command("augment", AugmentOptions, run, machines="threads")
