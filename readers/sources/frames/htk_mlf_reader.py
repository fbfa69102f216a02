"""HTKMLFReader: minibatches of frames from HTK feature files and master label files.

    reader = HTKMLFReader(config.block("TIMIT_Train").block("reader"), rng_seed=1)
    for minibatch in reader.minibatches(epoch=0, minibatch_size=256):
        minibatch.matrices["features"]          # (792, 256) float32, Fortran order
        minibatch.matrices["labels"]            # (183, 256) one-hot columns

Features are loaded in chunks; labels are kept in memory, two bytes per frame.
Source: CNTK book 3.4.2.
"""

from readers.sources.frames.frame_reader import FrameReader
from readers.sources.frames.htk_mlf_options import find_streams


class HTKMLFReader(FrameReader):
    """Reads frames from HTK feature files and labels from master label files.

    See FrameReader for parameters, attributes and errors, and the module's description for an example.
    """

    find_streams = staticmethod(find_streams)
