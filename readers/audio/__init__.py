"""Audio files and streams as samples on the 16-bit scale: WAV, FLAC, NIST SPHERE, HTK waveforms.

Open audio_file.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "audio_file": ["read_audio", "write_sphere"],
        "audio_stream": ["open_audio"],
    },
)
