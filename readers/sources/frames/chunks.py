"""Loading of chunks of consecutive utterances from feature files or page files.

In memory and in page files, the first and last frame of each utterance are repeated as the context window requires, so
that every window is contiguous (see minibatches/context.py).
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from readers.common.report import Progress
from readers.errors import FormatError
from readers.minibatches.context import pad_edges
from readers.sources.frames.corpus import Corpus
from readers.sources.frames.streams import CorpusFeatures, describe


class ChunkLoader:
    """Fills the memory of a chunk for `paging.ChunkCache`.

    firsts: (C + 1,) the first utterance of each chunk, and their number.
    pages: a page file for each stream, to read instead of the feature files.
    sizes[stream]: (C,) rows of each chunk, with repeated frames.
    first_rows[stream]: (U,) row within its chunk where the window of the first frame of each utterance begins.
    means[stream]: (U, dim) means over the utterances of the chunks loaded so far, of streams with masks; else (0, dim).
    """

    def __init__(
        self,
        features: Sequence[CorpusFeatures],
        corpus: Corpus,
        firsts: np.ndarray,
        pages: "Sequence[PageFile] | None" = None,
    ):
        self._features = features
        self._corpus = corpus
        self._firsts = firsts
        self._pages = pages
        self.sizes: list[np.ndarray] = []
        self.first_rows: list[np.ndarray] = []
        self._chunk_begins: list[np.ndarray] = []
        num_means = {stream.name: len(corpus.lines) if stream.masks else 0 for stream in features}
        self.means = [np.zeros((num_means[stream.name], stream.native_dim), np.float32) for stream in features]
        for stream in features:
            begins = np.insert(np.cumsum(corpus.num_frames + stream.left + stream.right), 0, 0)
            self._chunk_begins.append(begins[firsts])
            self.sizes.append(np.diff(begins[firsts]))
            self.first_rows.append(begins[:-1] - np.repeat(begins[firsts[:-1]], np.diff(firsts)))

    def __call__(self, chunk: int, outs: list[np.ndarray]) -> None:
        """Fill outs[stream] (rows, dim) float32, C order.  Raises FormatError or OSError naming the file."""
        if self._pages is not None:
            for page, begins, out in zip(self._pages, self._chunk_begins, outs):
                page.read(int(begins[chunk]), out)
        for stream, first_rows, means, out in zip(self._features, self.first_rows, self.means, outs):
            if self._pages is not None and not stream.masks:
                continue
            for utterance in range(self._firsts[chunk], self._firsts[chunk + 1]):
                num_frames = int(self._corpus.num_frames[utterance])
                begin = first_rows[utterance]
                if self._pages is None:
                    frames = stream.read(stream.entries[self._corpus.lines[utterance]], num_frames)
                    pad_edges(frames, out[begin : begin + stream.left + num_frames + stream.right], stream.left)
                if stream.masks:
                    means[utterance] = out[begin + stream.left : begin + stream.left + num_frames].mean(axis=0)


class PageFile:
    """A temporary file with the frames of one stream in corpus order; it disappears with the process.

    directory: where it is created; None for the system's directory of temporary files.  dim: values per frame.
    """

    def __init__(self, directory: Path | None, dim: int):
        self.dim = dim
        self.num_frames = 0
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=directory, prefix="argonaut-pages-", buffering=0)  # noqa: SIM115

    def append(self, frames: np.ndarray) -> None:
        """Append frames (n, dim) float32, C order."""
        view = frames.data.cast("B")
        while view:
            view = view[self._file.write(view) :]
        self.num_frames += len(frames)

    def read(self, first: int, out: np.ndarray) -> None:
        """Fill out (n, dim) float32, C order, with the frames first..first+n-1."""
        self._file.seek(first * self.dim * out.itemsize)
        view = out.data.cast("B")
        while view:
            got = self._file.readinto(view)
            if not got:
                raise FormatError("page file: unexpected end; expected the frames that were written to it")
            view = view[got:]

    def close(self) -> None:
        self._file.close()


def page_out(
    features: Sequence[CorpusFeatures], corpus: Corpus, directory: Path | None, progress: Progress | None = None
) -> tuple[list[PageFile], Corpus]:
    """Copy all features to page files, one for each stream; utterances that cannot be read are skipped.

    Returns the page files and the corpus without those utterances.
    """
    pages = [PageFile(directory, stream.native_dim) for stream in features]
    usable = np.ones(len(corpus.lines), bool)
    for utterance, (line, num_frames) in enumerate(zip(corpus.lines, corpus.num_frames)):
        try:
            padded: list[np.ndarray] = []
            for stream in features:
                frames = stream.read(stream.entries[line], int(num_frames))
                padded.append(np.empty((stream.left + num_frames + stream.right, stream.native_dim), np.float32))
                pad_edges(frames, padded[-1], stream.left)
        except (FormatError, OSError) as fault:
            usable[utterance] = False
            corpus.skipped.append((features[0].entries[line].key, describe(fault)))
        else:
            for page, out in zip(pages, padded):
                page.append(out)
        if progress is not None:
            progress(utterance + 1, len(usable))
    return pages, corpus if usable.all() else corpus.keep(usable)
