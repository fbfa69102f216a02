"""Audio files and streams: WAV, FLAC, NIST SPHERE, HTK waveforms, raw samples and others.

Samples are on the scale of 16-bit integers.  Open audio_file.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "audio_file": ["read_audio"],
        "audio_stream": ["AudioStream", "open_audio"],
        "header": ["AudioHeader", "read_audio_header"],
        "options": ["AudioFileOptions", "ChannelOptions"],
        "parts": ["AudioPart", "audio_part"],
        "raw": ["RawFormat"],
        "resampling": ["Resampler", "resample"],
    },
)
