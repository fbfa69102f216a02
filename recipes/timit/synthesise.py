"""A corpus with TIMIT's layout, spoken by eSpeak NG: TRAIN and TEST, DR1 to DR8, speakers, .WAV .PHN .WRD .TXT.

There are many voices with varied rate, pitch, vocal tract and noise, and the recipe for the LDC disc runs on it
unchanged.  Equal size and seed give equal bytes for any number of processes.  Requires the extra `demo`.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from readers.common.environment import available_cores
from readers.common.files import atomic_write
from readers.common.jobs.processes import as_they_end
from readers.common.jobs.stop_signals import interrupts_held_back
from readers.common.report import RunReport
from readers.errors import ArgonautError, ConfigError
from recipes.timit.synthesis import DATA
from recipes.timit.synthesis.espeak import load_wheel
from recipes.timit.synthesis.sentences import read_grammar
from recipes.timit.synthesis.speakers import Speaker, plan_corpus, read_voices

SPEAKERS_PER_PROCESS = 8  # affects the samples, because a new process speaks these speakers in order
NOTE = "; Synthesised by eSpeak NG through Argonaut; size {size}, seed {seed}."


def synthesise(
    out: str | os.PathLike[str],
    size: str = "demo",
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[..., None] | None = None,
) -> RunReport:
    """Write the corpus to the directory out; return a report of its utterances.

    size: "tiny", "demo" or "full" (`recipes.timit.synthesis.speakers.SIZES`).
    workers: number of parallel processes, default one per core.
    progress(done, total): called when utterances are finished.
    Raises ArgonautError if espeakng_loader is not installed, ConfigError for an unknown size and for a directory with
    another corpus, ChildProcessError if a process was killed.
    """
    load_wheel()
    out = Path(out)
    speakers = plan_corpus(size, seed, read_voices(DATA / "voices.txt"), read_grammar(DATA / "sentences.jsgf"))
    write_speaker_info(out, NOTE.format(size=size, seed=seed), speakers)
    batches = [speakers[i : i + SPEAKERS_PER_PROCESS] for i in range(0, len(speakers), SPEAKERS_PER_PROCESS)]
    total = sum(len(speaker.sentences) for speaker in speakers)
    finished = 0
    report = RunReport("utterances")
    losses: list[tuple[int, str, str]] = []
    with ThreadPoolExecutor(min(workers or available_cores(), len(batches))) as pool:
        futures = {pool.submit(speak_batch, out, batch): position for position, batch in enumerate(batches)}
        try:
            for future in as_they_end(futures):
                for name, reason in future.result().items():
                    finished += 1
                    if reason:
                        losses.append((futures[future], name, reason))
                if progress:
                    progress(finished, total)
        finally:  # do not wait for queued tasks after an interrupt
            with interrupts_held_back():
                for future in futures:
                    future.cancel()
    report.done(finished - len(losses))
    for _, name, reason in sorted(losses, key=lambda loss: loss[0]):
        report.fail(name, reason)
    return report


def speak_batch(out: Path, speakers: list[Speaker]) -> dict[str, str]:
    """Run one process for some speakers; return utterance -> reason if it failed, else ""."""
    task = {"out": os.fspath(out.absolute()), "speakers": [speaker.as_json() for speaker in speakers]}
    process = run_process(out, "worker", input=json.dumps(task))
    results = {}
    for line in process.stdout.splitlines():
        result = json.loads(line)
        results[result["name"]] = result.get("reason", "")
    for speaker in speakers:
        for name, _ in speaker.sentences:
            results.setdefault(f"{speaker.directory}/{name}", how_it_ended(process))
    return results


def write_language(out: Path, seed: int) -> None:
    """Write sentences of the corpus' grammar, out/words.txt, and their words in TIMIT's phones, out/words.dict.

    Raises ArgonautError if the synthesiser fails, ChildProcessError if its process was killed.
    """
    load_wheel()
    out.mkdir(parents=True, exist_ok=True)
    process = run_process(out, "language", os.fspath(out), str(seed))
    if process.returncode:
        raise ArgonautError(f"{out / 'words.dict'}: {how_it_ended(process)}; expected a dictionary")


def how_it_ended(process: subprocess.CompletedProcess[str]) -> str:
    last_words = process.stderr.strip().splitlines()[-1:] or ["no message"]
    return f"the synthesiser's process ended with status {process.returncode}: {last_words[0]}"


def run_process(out: Path, module: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a module of the synthesiser in a process of its own."""
    root = Path(__file__).parents[2]
    paths = [os.fspath(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.run(
        [sys.executable, "-m", f"recipes.timit.synthesis.{module}", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        **options,
    )
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        raise ChildProcessError(f"{out}: a process of the synthesiser was stopped by {name}; run again")
    return process


def write_speaker_info(out: Path, note: str, speakers: list[Speaker]) -> None:
    """Write DOC/SPKRINFO.TXT, a description of the speakers.

    The file also marks the directory, so that no other corpus is overwritten.
    """
    path = out / "DOC" / "SPKRINFO.TXT"
    first_line = path.read_text().splitlines()[0] if path.is_file() else ""
    if first_line != note and (first_line or any((out / part).exists() for part in ("TRAIN", "TEST", "train", "test"))):
        raise ConfigError(
            f"{out}: contains another corpus ({first_line.lstrip('; ') or 'not a synthesised one'}); expected an "
            "empty directory; choose another or remove it"
        )
    with atomic_write(path, "w") as file:
        file.write(
            f"{note}\n; speaker, part, dialect, voice, words a minute, pitch, pitch range, tract, SNR in dB, tilt\n"
        )
        for s in speakers:
            file.write(f"{s.name} {s.part} DR{s.dialect} {s.voice} {s.rate} {s.pitch} {s.pitch_range}")
            file.write(f" {s.tract} {s.snr} {s.tilt}\n")
