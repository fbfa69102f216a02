"""Recognise audio files by their first bytes, for the readers of audio and for the messages of all others."""

from readers.errors import FormatError

HEAD_SIZE = 8192  # bytes that `audio_format` needs: two MPEG frames
NIST_SPHERE, WAV, MP3 = "NIST SPHERE", "WAV", "MP3"
# Names of files, in lower case; in folders, files with other names are no audio.
AUDIO_SUFFIXES = (
    *(".wav", ".flac", ".sph", ".nist", ".mp3", ".ogg", ".oga", ".opus", ".aiff", ".aif", ".aifc", ".au", ".snd"),
    *(".caf", ".voc", ".w64", ".rf64"),
)
UNREADABLE_SUFFIXES = (".m4a", ".mp4", ".aac", ".wma", ".amr", ".webm", ".mkv", ".mov", ".avi", ".3gp")
# The formats that libsndfile decodes.  Headerless samples and HTK waveforms have no magic number.
MAGIC = {
    b"RIFF": WAV,
    b"RIFX": WAV,
    b"RF64": WAV,
    b"riff": "Wave64",
    b"fLaC": "FLAC",
    b"FORM": "AIFF",
    b".snd": "AU",
    b"dns.": "AU",
    b"OggS": "Ogg",
    b"caff": "CAF",
    b"NIST": NIST_SPHERE,
    b"Creative Voice File": "VOC",
    b"ID3": MP3,
}
# Of MPEG audio: kbit/s by (MPEG 1 or not, layer), index 1 to 14; and Hz by version, index 0 to 2.
_BITRATES = {
    (True, 1): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES = {0: (11025, 12000, 8000), 2: (22050, 24000, 16000), 3: (44100, 48000, 32000)}


def audio_format(head: bytes) -> str | None:
    """Return the name of an audio format, such as "WAV", given the first bytes of a file; None for other files.

    Parameters
    ----------
    head : bytes
        At most HEAD_SIZE bytes are needed.  MPEG audio without an ID3 tag has no magic number; it is recognised by the
        headers of its first frames.
    """
    for magic, name in MAGIC.items():
        if head.startswith(magic):
            return name
    return MP3 if first_mpeg_frame(head[:HEAD_SIZE]) >= 0 else None


def refuse_audio(head: bytes, path: object, expected: str) -> None:
    """Raise FormatError if a file that begins with `head` is audio, where `expected` describes another kind of file."""
    form = audio_format(head)
    if form:
        raise FormatError(f"{path}: {form} audio; expected {expected}")


def first_mpeg_frame(data: bytes) -> int:
    """Return the position of the first MPEG audio frame, -1 if there is none.

    At the beginning, two frames are enough; after other bytes, which may look like a frame, it takes three of one kind.
    """
    position = data.find(b"\xff")
    while position >= 0 and not _is_followed(data, position, 1 if position == 0 else 2):
        position = data.find(b"\xff", position + 1)
    return position


def _is_followed(data: bytes, position: int, count: int) -> bool:
    """Whether a frame begins here, and so many others of its kind follow."""
    kind = mpeg_kind(data, position)
    for _ in range(count):
        size = mpeg_frame_size(data[position : position + 4])
        position += size
        if not size or not mpeg_frame_size(data[position : position + 4]) or mpeg_kind(data, position) != kind:
            return False
    return True


def mpeg_kind(data: bytes, position: int) -> bytes:
    """Return the bits of the header at a position that all frames share: version, layer and sampling rate."""
    return bytes(byte & mask for byte, mask in zip(data[position + 1 : position + 3], (0xFE, 0x0C)))


def mpeg_frame_size(head: bytes) -> int:
    """Return the bytes of the MPEG audio frame that begins here, 0 if none does."""
    if len(head) < 4 or head[0] != 0xFF or head[1] < 0xE0:
        return 0
    version = head[1] >> 3 & 3
    layer = 4 - (head[1] >> 1 & 3)
    bitrate = head[2] >> 4
    rate = head[2] >> 2 & 3
    padding = head[2] >> 1 & 1
    if version not in _RATES or layer == 4 or bitrate in (0, 15) or rate == 3:
        return 0
    first = version == 3
    bits = 1000 * _BITRATES[first, layer][bitrate - 1]
    if layer == 1:
        return 4 * (12 * bits // _RATES[version][rate] + padding)
    return (144 if first or layer == 2 else 72) * bits // _RATES[version][rate] + padding


def mpeg_frame_samples(head: bytes | memoryview) -> int:
    """Return the samples per channel of the MPEG audio frame that begins here."""
    layer = 4 - (head[1] >> 1 & 3)
    return 384 if layer == 1 else 576 if layer == 3 and head[1] >> 3 & 3 != 3 else 1152
