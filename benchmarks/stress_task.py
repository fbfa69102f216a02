"""The stress task of `python -m benchmarks.stress`, for benchmarks."""

import itertools
from pathlib import Path


class Task:
    """The output of `python -m benchmarks.stress`.  utterances: only the first ones."""

    def __init__(self, directory: Path, utterances: int | None = None):
        self.directory, self._num_utterances = directory, utterances

    def ready(self, size: str) -> bool:
        """Make the task if it does not exist; whether that succeeded."""
        from benchmarks.experiment import main

        if (self.directory / "stages" / "speech.done").exists():
            return True
        return main("stress", ["--size", size, "--out", str(self.directory), "--to", "speech"]) == 0

    def decoder(self):
        from recipes.decoding import open_decoder

        return open_decoder(self.directory / "graph", self.directory / "words.arpa")

    def references(self) -> dict[str, list[str]]:
        from decoder.scoring.words import read_words

        found = read_words(self.directory / "speech" / "words.mlf")
        return dict(itertools.islice(found.items(), self._num_utterances))

    def scores(self) -> dict:
        """utterance -> log-likelihoods (K, T)."""
        from acoustic.scoring.scorer import AcousticScorer
        from readers.htk.parameter_file import read_htk
        from readers.htk.scp import read_scp

        scorer = AcousticScorer(self.directory / "am.dnn", window=1)
        entries = read_scp(self.directory / "speech" / "test.scp")[: self._num_utterances]
        return {entry.key: scorer.score(read_htk(entry.path).frames) for entry in entries}

    def peer_graph(self, decoder):
        """HCLG as a ConstFst, as Kaldi would build it with the costs of our decoder; kept as peer.fst."""
        from benchmarks.kaldi_triphones import build_triphone_hclg, stored_hclg
        from benchmarks.stress.speech import PAUSE_PROBABILITY
        from decoder.graph.phone_models import PhoneModels
        from readers.htk.dictionary import read_dictionary

        path, graph = self.directory / "peer.fst", self.directory / "graph" / "graph.dg"
        if path.exists() and path.stat().st_mtime < graph.stat().st_mtime:
            path.unlink()
        dictionary, models = read_dictionary(self.directory / "words.dict"), PhoneModels.load(self.directory / "hmms")
        hclg = stored_hclg(path, lambda: build_triphone_hclg(decoder, dictionary, models, PAUSE_PROBABILITY))
        sizes = (f"{name} {file.stat().st_size / 1e6:.0f} MB" for name, file in (("ours", graph), ("the peer's", path)))
        print(f"graphs: {', '.join(sizes)} (beside ours the trigram is searched, in the peer's it is contained)")
        return hclg

    def flat_graph_decoder(self, decoder):
        """The decoder over a graph without look-ahead; built once, in flat/."""
        import numpy as np

        from benchmarks.stress.speech import PAUSE_PROBABILITY
        from readers.language.arpa import Arpa, ArpaOrder, write_arpa
        from recipes.cli.main import main
        from recipes.decoding import open_decoder

        out, donor = self.directory / "flat", self.directory / "donor"
        if not (out / "graph.dg").exists():
            words = [word for word in decoder.lm.vocabulary if word != "<s>"]
            certain = np.zeros(len(words) + 1)  # log10 P = 0: no look-ahead cost
            certain[0] = -99.0
            numbers = np.arange(len(words) + 1)[:, None]
            write_arpa(out / "flat.arpa", Arpa(["<s>", *words], [ArpaOrder(numbers, certain, np.zeros(len(certain)))]))
            arguments = ["graph", "--hmms", self.directory / "hmms", "--dict", self.directory / "words.dict"]
            arguments += [
                "--lm",
                out / "flat.arpa",
                "--sil-prob",
                PAUSE_PROBABILITY,
                "--state-list",
                donor / "senones.list",
            ]
            if main([*map(str, arguments), "--out", str(out)]):
                raise SystemExit(2)
        return open_decoder(out, self.directory / "words.arpa").with_options(**vars(decoder.options))
