from readers.writers.htk_mlf_writer import HTKMLFWriter as HTKMLFWriter
from readers.writers.kaldi_writer import KaldiWriter as KaldiWriter
from readers.writers.text_writer import TextFormat as TextFormat
from readers.writers.text_writer import TextWriter as TextWriter
