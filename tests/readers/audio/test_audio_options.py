"""The options of audio files: channels by number or name, and the format of audio without a header."""

import pytest

from readers.audio.options import AudioFileOptions
from readers.audio.raw import RawFormat
from readers.config.options import OptionFault


def test_a_channel_is_a_number_or_the_mean_of_all():
    assert [AudioFileOptions(channel=channel).channel for channel in ("1", 1, "mix", None)] == [1, 1, "mix", None]
    for channel in ("left", "-1", -1, ""):
        with pytest.raises(OptionFault, match=rf"channel is {channel}; expected a number from 0, or mix"):
            AudioFileOptions(channel=channel)


def test_the_format_of_audio_without_a_header():
    assert AudioFileOptions().raw is None
    assert AudioFileOptions(rate=8000).raw == RawFormat(8000, "s16le", 1)
    assert AudioFileOptions(rate=8000, encoding="mulaw", channels=2).raw == RawFormat(8000, "mulaw", 2)
    with pytest.raises(OptionFault, match="channels is given without rate; expected the sampling rate, too"):
        AudioFileOptions(channels=2)
