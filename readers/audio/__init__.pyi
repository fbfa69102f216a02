# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.audio.audio_file import read_audio as read_audio
from readers.audio.audio_stream import AudioStream as AudioStream
from readers.audio.audio_stream import open_audio as open_audio
from readers.audio.header import AudioHeader as AudioHeader
from readers.audio.header import read_audio_header as read_audio_header
from readers.audio.options import AudioFileOptions as AudioFileOptions
from readers.audio.options import ChannelOptions as ChannelOptions
from readers.audio.parts import AudioPart as AudioPart
from readers.audio.parts import audio_part as audio_part
from readers.audio.raw import RawFormat as RawFormat
from readers.audio.resampling import Resampler as Resampler
from readers.audio.resampling import resample as resample
