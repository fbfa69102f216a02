# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.sources.frames.data_check import ReaderSummary as ReaderSummary
from readers.sources.frames.data_check import check_reader as check_reader
from readers.sources.frames.frame_reader import FrameReader as FrameReader
from readers.sources.frames.htk_mlf_options import ReaderOptions as ReaderOptions
from readers.sources.frames.htk_mlf_reader import HTKMLFReader as HTKMLFReader
from readers.sources.frames.kaldi2_reader import Kaldi2Options as Kaldi2Options
from readers.sources.frames.kaldi2_reader import Kaldi2Reader as Kaldi2Reader
from readers.sources.frames.kaldi_reader import KaldiReader as KaldiReader
from readers.sources.frames.stream_options import FeatureOptions as FeatureOptions
from readers.sources.frames.stream_options import HTKFeatureOptions as HTKFeatureOptions
from readers.sources.frames.stream_options import LabelOptions as LabelOptions
from readers.sources.frames.streams import CorpusFeatures as CorpusFeatures
from readers.sources.frames.streams import CorpusLabels as CorpusLabels
