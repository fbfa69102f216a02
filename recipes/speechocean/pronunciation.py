"""A map of pronunciation scores, fitted to those of the corpus's experts, in the bundle of a recipe."""

import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from decoder.recognizer.jobs.pronunciation.fitting import LEAST_SPEAKERS
from readers.common.files import write_lines
from readers.results.expert_scores import UTTERANCE, read_entries
from recipes.speechocean.corpus import Speechocean
from recipes.speechocean.halves import Halves
from recipes.stage_settings import file_settings
from recipes.stages import Stage
from recipes.steps import score_pronunciation


@dataclass(frozen=True)
class PronunciationMap:
    """Fits the map to speakers whom the networks never heard, and measures it on others.

    corpus: as published.
    bundle: gets the map.
    home: a directory for the scores of both sets of speakers.
    fitted, tested: names of the speakers; without any in `tested`, the map is not measured.
    halves: networks for speakers of the training, to whose scores it is fitted as well.
    """

    corpus: Speechocean
    bundle: Path
    home: Path
    fitted: Collection[str]
    tested: Collection[str] = ()
    halves: Halves | None = None

    def stages(self) -> list[Stage]:
        """Return the stages that follow pack, none for a corpus without scores."""
        if not self.corpus.scores.is_file():
            return []
        settings = {"fitted": " ".join(self.fitted), "tested": " ".join(self.tested)}
        halves = [] if self.halves is None else [self.halves.stage()]
        needs = ("pack", *(stage.name for stage in halves))
        return [
            *halves,
            Stage("pronunciation", "a map of pronunciation scores, in the bundle", self.fit, needs,
                  settings | file_settings(self.corpus.scores)),
        ]  # fmt: skip

    def fit(self) -> int:
        speaker_of = self.corpus.table("utt2spk")
        files = {}
        halves = () if self.halves is None else self.halves.networks
        networks = {f"half{each.home.name}": each for each in halves if each.bundle.is_file()}
        sets = {"fitted": self.fitted, "tested": self.tested}
        for name, speakers in (sets | {name: network.unheard for name, network in networks.items()}).items():
            entries = [
                {UTTERANCE: utterance, **entry}
                for _, utterance, entry in read_entries(self.corpus.scores)
                if speaker_of.get(utterance) in speakers
            ]
            if entries:
                files[name] = self.home / f"{name}.jsonl"
                write_lines(files[name], map(json.dumps, entries))
        num_speakers = len(set(self.fitted) & set(speaker_of.values()))
        if "fitted" not in files or num_speakers < LEAST_SPEAKERS:
            print(
                f"{self.corpus.scores}: scores of {num_speakers} development speakers; no map without {LEAST_SPEAKERS}"
            )
            return 0
        audio = os.path.commonpath(self.corpus.root / path for path in self.corpus.table("wav.scp").values())
        write_lines(self.home / "utt2spk", (f"{name} {speaker}" for name, speaker in speaker_of.items()))
        return score_pronunciation(
            self.bundle, audio=Path(audio), scores=files["fitted"], test=files.get("tested"),
            speakers=self.home / "utt2spk",
            also=[network.bundle for name, network in networks.items() if name in files],
            also_scores=[files[name] for name in networks if name in files],
        )  # fmt: skip
