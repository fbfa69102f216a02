"""Trigrams of 6.2 million words: time and memory to estimate, mix and prune them, and how pruning costs perplexity.

    python -m benchmarks.language_model sentences.txt.gz [--peer] [--out DIR]

The text, one sentence per line, is written in lower case.  Of each 100 sentences one is held out for the weights of the
mixture and one for the perplexities; a model is estimated from either half of the others, as if these were two texts.
The whole chain may take three minutes of CPU and 2 GB.  --peer prunes a model of an eighth of the text with kaldingram
(pip install kaldingram), which follows SRILM, and with ours, and compares sizes and perplexities.
"""

import argparse
import gzip
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMITS = {"seconds": 180, "gigabytes": 2.0}
THRESHOLDS = ("1e-8", "3e-8", "1e-7", "3e-7")
PEER_THRESHOLDS = ("1e-7", "3e-7", "1e-6")
PROGRAM = "import sys; from recipes.cli.main import main; sys.exit(main(sys.argv[1:]))"


def main(argv: list[str] | None = None) -> int:
    """Print the figures; the exit status is 1 when a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language_model", description=__doc__)
    parser.add_argument("text", type=Path, help="one sentence per line, .gz")
    parser.add_argument("--peer", action="store_true", help="compare with kaldingram")
    parser.add_argument("--out", type=Path, help="keep the files here (default: a temporary directory)")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        directory = arguments.out or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        write_texts(arguments.text, directory)
        return measure_peer(directory) if arguments.peer else measure(directory)


def write_texts(text: Path, directory: Path) -> None:
    """Write first.txt, second.txt, eighth.txt, heldout.txt and test.txt."""
    from readers.corpora.words import WordForms

    forms = WordForms("lower")
    with gzip.open(text, "rt", encoding="utf-8") as file:
        sentences = [" ".join(words) + "\n" for words in map(forms.split, file) if words]
    half = len(sentences) // 2
    parts: dict[str, list[str]] = {name: [] for name in ("first", "second", "eighth", "heldout", "test")}
    for number, sentence in enumerate(sentences):
        if number % 100 < 2:
            parts["heldout" if number % 100 else "test"].append(sentence)
            continue
        parts["first" if number < half else "second"].append(sentence)
        if number % 8 == 2:
            parts["eighth"].append(sentence)
    for name, lines in parts.items():
        (directory / f"{name}.txt").write_text("".join(lines), encoding="utf-8")


def run(directory: Path, *command: str) -> tuple[float, float, str]:
    """Run a program in the directory; return its seconds of CPU, its gigabytes and what it printed."""
    places = [str(Path.cwd()), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}
    with subprocess.Popen(command, cwd=directory, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20, printed


def lm(directory: Path, *arguments: str) -> tuple[float, float, str]:
    return run(directory, sys.executable, "-c", PROGRAM, "lm", *arguments)


def measure(directory: Path) -> int:
    models = ("--lm", "first.arpa", "--lm", "second.arpa")
    lm(directory, "vocabulary", "--text", "test.txt", "-o", "words")  # load the program, so that all steps find it warm
    steps = [
        ("estimate", "--text", "first.txt", "-o", "first.arpa"),
        ("estimate", "--text", "second.txt", "-o", "second.arpa"),
        ("mix", *models, "--heldout", "heldout.txt", "-o", "mixture.arpa"),
        ("prune", "--lm", "mixture.arpa", "--threshold", THRESHOLDS[0], "-o", "pruned.arpa"),
    ]
    seconds = gigabytes = 0.0
    begin = time.perf_counter()
    for step in steps:
        used, memory, printed = lm(directory, *step)
        print(f"language-model: {step[0]}: {used:.1f} s of CPU, {memory:.2f} GB", printed.strip(), sep="\n", flush=True)
        seconds, gigabytes = seconds + used, max(gigabytes, memory)
    print(f"language-model: {seconds:.1f} s of CPU ({time.perf_counter() - begin:.0f} s), {gigabytes:.2f} GB in all")
    print(f"mixture: {size_of(directory / 'mixture.arpa')} n-grams, {perplexity(directory, 'mixture.arpa')}")
    for threshold in THRESHOLDS:
        lm(directory, "prune", "--lm", "mixture.arpa", "--threshold", threshold, "-o", "pruned.arpa")
        print(
            f"{threshold}: {size_of(directory / 'pruned.arpa')} n-grams, {perplexity(directory, 'pruned.arpa')}",
            flush=True,
        )
    return 0 if seconds <= LIMITS["seconds"] and gigabytes <= LIMITS["gigabytes"] else 1


def measure_peer(directory: Path) -> int:
    lm(directory, "estimate", "--text", "eighth.txt", "-o", "eighth.arpa")
    print(f"eighth: {size_of(directory / 'eighth.arpa')} n-grams, {perplexity(directory, 'eighth.arpa')}", flush=True)
    for threshold in PEER_THRESHOLDS:
        ours = lm(directory, "prune", "--lm", "eighth.arpa", "--threshold", threshold, "-o", "ours.arpa")
        arguments = ("prune", "--threshold", threshold, "--lm", "eighth.arpa", "--write-lm", "theirs.arpa")
        theirs = run(directory, sys.executable, "-m", "kaldingram.cli", *arguments)
        for name, (used, memory, _) in (("ours", ours), ("theirs", theirs)):
            model = f"{name}.arpa"
            figures = f"{size_of(directory / model)} n-grams, {perplexity(directory, model)}"
            print(f"{threshold} {name}: {figures}, {used:.1f} s of CPU, {memory:.2f} GB", flush=True)
    return 0


def size_of(path: Path) -> int:
    """Return the number of n-grams that the header of an ARPA file announces."""
    with path.open(encoding="utf-8") as file:
        header = itertools.takewhile(lambda line: not line.startswith("\\1-grams"), file)
        return sum(int(line.partition("=")[2]) for line in header if line.startswith("ngram"))


def perplexity(directory: Path, model: str) -> str:
    """Return `perplexity X` of the test text; words outside the vocabulary are left out."""
    program = (
        "import sys; from decoder.lm import LanguageModel, perplexity; from readers.language.arpa import read_arpa\n"
        "text = [line.split() for line in open('test.txt', encoding='utf-8')]\n"
        "print(perplexity(LanguageModel.from_arpa(read_arpa(sys.argv[1])), text).perplexity)"
    )
    _, _, printed = run(directory, sys.executable, "-c", program, model)
    return f"perplexity {float(printed):.2f}"


if __name__ == "__main__":
    sys.exit(main())
