"""The options of feature extraction, from Python or from an HTK configuration."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from features.settings import REFUSED, SETTINGS, WITHOUT_EFFECT, is_default
from readers.audio.audio_file import Channel
from readers.audio.raw import RawFormat
from readers.errors import ConfigError
from readers.htk.units import TICKS_PER_SECOND

BASE_KINDS = ("FBANK", "MELSPEC", "MFCC", "PLP", "WAVEFORM")
CEPSTRAL_KINDS = ("MFCC", "PLP")
QUALIFIERS = "E0NDATZCK"  # HTK's qualifiers of a target kind, except V (vector quantisation)
TOOLKITS = {"WHISPER": "FBANK", "NEMO": "FBANK", "WAV2VEC2": "WAVEFORM"}  # with their kinds of features
SOURCE_FORMATS = ("WAV", "WAVE", "FLAC", "NIST", "HTK", "AIFF", "SUNAU8")
# HTK's other formats of audio, and why they cannot be read.
OTHER_FORMATS = {
    **dict.fromkeys(
        ("ALIEN", "NOHEAD"),
        "is audio without a known header; leave SOURCEFORMAT out and use the option rate",
    ),
    **dict.fromkeys(("TIMIT", "SCRIBE", "SDES1", "OGI", "ESIG"), "is a format that cannot be read; convert it to WAV"),
    "AUDIO": "is live audio; features are computed from files",
}
OTHER_KINDS = ("LPC", "LPREFC", "LPCEPSTRA", "LPDELCEP", "IREFC", "USER", "DISCRETE", "ANON")
SOURCE_RATE_TOLERANCE = 1e-3  # users write 453.5 for 22050 Hz
MAX_DELTA_WINDOW = 1000  # frames on either side; protects the memory from a typing error


class SettingError(ConfigError):
    """An invalid value; `setting` is its HTK name, so that callers can add file and line."""

    def __init__(self, setting: str, found: object, expected: str):
        shown = " ".join(f"{value:g}" for value in found[:3]) + " ..." if isinstance(found, tuple) else found
        super().__init__(f"{setting} = {shown}; expected {expected}")
        self.setting = setting


@dataclass(frozen=True)
class FeatureConfig:
    """Options of feature extraction.

    `features.settings.SETTINGS` maps HTK's names to these fields.  Times are in units of 100 ns, frequencies in Hz.
    Defaults are HTK's (HTK Book 3.4, section 5.18), except target_rate, which HTK does not define: 10 ms is usual.

    Parameters
    ----------
    target_kind : str
        Base kind FBANK, MELSPEC, MFCC or PLP with qualifiers, such as FBANK_Z_D_A; or WAVEFORM, a frame for each
        sample, from -1 to 1, for networks that take samples.
    target_rate, window_size : float
        Frame period and window length, 100 ns units.
    source_rate : float
        Sample period, 100 ns units, to which audio files are resampled; 0 for that of each file.
    source_kind, source_format, target_format : str
        WAVEFORM; format of the audio, which is only informative; HTK.
    channel : int, "mix" or None
        Channel of the audio, counted from 0, or the mean of all; None for audio that has one.
    upsample : bool
        Accept audio files of a lower sample rate than `source_rate`, which lack the upper frequencies.
    raw : readers.audio.RawFormat or None
        Format of audio files without a header; None if they are to be refused.
    save_compressed, save_with_crc : bool
        Add _C and _K to the kind of the file.
    natural_write_order : bool
        Write files in the byte order of the machine, not big-endian.
    dither : float
        Amplitude of uniform noise; below 0, the same noise for every utterance.
    seed : int
        Seed of the dither.
    zero_mean_source, use_hamming : bool
        Subtract the mean of each frame; apply a Hamming window.
    kaldi : bool
        Kaldi's conventions instead of HTK's: its window, filters of all bins within their limits, no floor of 1 before
        the logarithm, and c0 divided by the square root of 2.
    snip_edges : bool
        Windows lie within the samples.  Else, with `kaldi`, they are centred at hops and a half, and samples beyond the
        ends are those before them in reverse order.
    preemphasis : float
        Pre-emphasis coefficient.
    num_channels : int
        Number of filters.
    low_frequency, high_frequency : float
        Limits of the filterbank, Hz; below 0, no limit.
    double_fft : bool
        Twice the FFT length that the window needs.
    use_power : bool
        Power instead of magnitude spectrum.
    warp, warp_low_cutoff, warp_high_cutoff : float
        Warping factor of vocal tract length normalisation and its corners, Hz.
    num_cepstra, lifter, lpc_order, compression : int, float, int, float
        Number of cepstra, liftering parameter, order of the all-pole model of PLP, exponent of its compression.
    raw_energy, normalise_energy : bool
        Energy before window and pre-emphasis; normalise the log energy per utterance.
    energy_scale, silence_floor : float
        Scale of the log energy; its floor, dB below the maximum.
    delta_window, acceleration_window, third_window : int
        Half widths of the regression windows, in frames.
    simple_differences : bool
        Differences instead of regression.
    sphinx : bool
        Compute the spectrum as CMU Sphinx: pre-emphasis goes on from frame to frame, filters are triangles in Hz with
        unit area and corners at bins, and 1e-4 is added before the logarithm.
    remove_noise : bool
        With `sphinx`, follow the noise of each filter and reduce it.
    toolkit : {"", "WHISPER", "NEMO", "WAV2VEC2"}
        WAV2VEC2: samples with mean 0 and deviation 1 in each utterance, for WAVEFORM.  The others:
        Log mel energies of whole utterances as these toolkits compute them: a Hann window centred at k * hop for frame
        k < N // hop, filters of area 1 in Hz on Slaney's mel scale, samples from -1 to 1.  WHISPER: the FFT is as long
        as the window, repeated samples beyond the ends, log10 at most 8 below the largest value, (x + 4) / 4.  NEMO:
        zeros beyond the ends, ln(x + 2^-24), mean 0 and deviation 1 of each row.
    speech_mean : tuple of float
        Mean of the static features, without the log energy, over the speech of the training.  With it, _Z subtracts a
        mean that follows speech (`features.tracking.speech_mean`), in files as in streams; () for that of the
        utterance, as in HTK.

    Raises
    ------
    ConfigError
        For a value that is invalid at any sample rate; the message names the HTK setting.

    References
    ----------
    HTK Book 3.4, chapter 5 and chapter "Configuration Variables".
    """

    target_kind: str = "MFCC"
    target_rate: float = 100_000.0
    source_rate: float = 0.0
    source_kind: str = "WAVEFORM"
    source_format: str = ""
    target_format: str = "HTK"
    channel: Channel = None
    upsample: bool = False
    raw: RawFormat | None = None
    save_compressed: bool = False
    save_with_crc: bool = True
    natural_write_order: bool = False
    dither: float = 0.0
    zero_mean_source: bool = False
    window_size: float = 256_000.0
    use_hamming: bool = True
    kaldi: bool = False
    snip_edges: bool = True
    double_fft: bool = False
    preemphasis: float = 0.97
    num_channels: int = 20
    low_frequency: float = -1.0
    high_frequency: float = -1.0
    use_power: bool = False
    warp: float = 1.0
    warp_low_cutoff: float = 0.0
    warp_high_cutoff: float = 0.0
    num_cepstra: int = 12
    lifter: float = 22.0
    lpc_order: int = 12
    compression: float = 0.33
    raw_energy: bool = True
    normalise_energy: bool = True
    energy_scale: float = 0.1
    silence_floor: float = 50.0
    delta_window: int = 2
    acceleration_window: int = 2
    third_window: int = 2
    simple_differences: bool = False
    speech_mean: tuple[float, ...] = ()
    seed: int = 0
    sphinx: bool = False
    remove_noise: bool = False
    toolkit: str = ""

    @property
    def first_centre(self) -> float:
        """Time of the centre of the first window, in 100 ns units."""
        if self.toolkit and self.base_kind == "FBANK":
            return 0.0
        return self.window_size / 2 if self.snip_edges else self.target_rate / 2

    def is_source_rate(self, rate: float) -> bool:
        """Return whether a sample rate in Hz is that of `source_rate`, up to the rounding of its period."""
        return abs(self.source_rate * rate / TICKS_PER_SECOND - 1.0) <= SOURCE_RATE_TOLERANCE

    def __post_init__(self) -> None:
        object.__setattr__(self, "speech_mean", tuple(map(float, self.speech_mean)))  # any sequence, also an array
        check_kinds(self)
        check_numbers(self)

    @classmethod
    def from_hcopy(cls, settings: Mapping[str, str], **overrides: Any) -> Self:
        """Return the options for HTK names and the text of their values, as `read_hcopy_config` returns them.

        Names without effect are ignored (`features.settings.WITHOUT_EFFECT`).
        settings: may have a method `where(name) -> "file:line"` and an attribute `source`, the name of the file, for
        messages. overrides: fields of this class.
        Raises ConfigError for unknown names (with the nearest known one), unsupported names (with the reason) and
        invalid values.
        """
        where = getattr(settings, "where", lambda name: "configuration")
        source = getattr(settings, "source", "configuration")
        values = {}
        for name, text in settings.items():
            if name in WITHOUT_EFFECT or is_default(name, text):
                continue
            field_name, parse = look_up(name, text, where(name))
            try:
                values[field_name] = parse(text)
            except ValueError as fault:
                raise ConfigError(f"{where(name)}: {name} = {text}; {fault}") from None
        if "target_kind" not in values | overrides:
            raise ConfigError(f"{source}: no TARGETKIND; expected for instance TARGETKIND = FBANK_Z_D_A")
        try:
            return cls(**values | overrides)
        except SettingError as fault:
            origin = where(fault.setting) if fault.setting in settings else source
            raise ConfigError(f"{origin}: {fault}") from None

    @property
    def base_kind(self) -> str:
        """The kind of the features without qualifiers, such as FBANK."""
        return self.target_kind.split("_")[0]

    def has(self, qualifier: str) -> bool:
        """Whether the target kind has the qualifier."""
        return qualifier in self.target_kind.split("_")[1:]

    @property
    def num_static(self) -> int:
        """Number of rows of the static features: coefficients, then c0, then log energy."""
        if self.base_kind == "WAVEFORM":
            return 1
        coefficients = self.num_cepstra if self.base_kind in CEPSTRAL_KINDS else self.num_channels
        return coefficients + self.has("0") + self.has("E")

    @property
    def num_centred(self) -> int:
        """Number of static rows of which _Z subtracts the mean: all but the log energy, which Kaldi does not exempt."""
        return self.num_static - (self.has("E") and (self.has("N") or not self.kaldi))

    @property
    def dim(self) -> int:
        """Number of rows of the feature matrix."""
        return self.num_static * (1 + self.has("D") + self.has("A") + self.has("T")) - self.has("N")

    @property
    def file_kind(self) -> str:
        """TARGETKIND with _C for SAVECOMPRESSED and _K for SAVEWITHCRC."""
        kind = self.target_kind
        for qualifier, is_set in (("C", self.save_compressed), ("K", self.save_with_crc)):
            if is_set and not self.has(qualifier):
                kind += f"_{qualifier}"
        return kind


def look_up(name: str, text: str, place: str) -> tuple[str, Callable[[str], Any]]:
    """Return (field, parser) of a known HTK name; raises ConfigError for unsupported and unknown names."""
    if name in SETTINGS:
        return SETTINGS[name][:2]
    if name in REFUSED:
        raise ConfigError(f"{place}: {name} = {text} is not supported: {REFUSED[name]}")
    nearest = difflib.get_close_matches(name, [*SETTINGS, *WITHOUT_EFFECT, *REFUSED], n=1, cutoff=0.5)
    hint = f"the nearest is {nearest[0]}" if nearest else "see `argonaut hcopy --help` for the list"
    raise ConfigError(f"{place}: unknown name {name}; expected a name of HTK's configuration; {hint}")


def check_kinds(config: FeatureConfig) -> None:
    """Check formats, base kinds and combinations of qualifiers (HTK Book 3.4, section 5.11)."""
    base, *qualifiers = config.target_kind.split("_")
    kind = config.target_kind
    if base not in BASE_KINDS:
        standing = "is a kind of HTK that is not supported" if base in OTHER_KINDS else "is not a kind of HTK"
        raise SettingError("TARGETKIND", kind, f"{', '.join(BASE_KINDS)}; {base} {standing}")
    for qualifier in qualifiers:
        if len(qualifier) != 1 or qualifier not in QUALIFIERS:
            raise SettingError("TARGETKIND", kind, f"qualifiers out of _{' _'.join(QUALIFIERS)}, not _{qualifier}")
    if len(set(qualifiers)) != len(qualifiers):
        raise SettingError("TARGETKIND", kind, "each qualifier once")
    for qualifier, needed in (("A", "D"), ("T", "A"), ("N", "E"), ("N", "D")):
        if qualifier in qualifiers and needed not in qualifiers:
            raise SettingError("TARGETKIND", kind, f"_{needed} where _{qualifier} is")
    if qualifiers and base == "WAVEFORM":
        raise SettingError("TARGETKIND", kind, "no qualifiers of WAVEFORM")
    if "0" in qualifiers and base not in CEPSTRAL_KINDS:
        raise SettingError("TARGETKIND", kind, f"_0 with {' or '.join(CEPSTRAL_KINDS)} only")
    if config.source_format and config.source_format not in SOURCE_FORMATS:
        standing = OTHER_FORMATS.get(config.source_format, "is not a format of HTK")
        expected = f"one of {', '.join(SOURCE_FORMATS)}; {config.source_format} {standing}"
        raise SettingError("SOURCEFORMAT", config.source_format, expected)
    if config.source_kind not in ("WAVEFORM", "ANON"):
        raise SettingError("SOURCEKIND", config.source_kind, "WAVEFORM: features are computed only from audio")
    if config.target_format != "HTK":
        raise SettingError("TARGETFORMAT", config.target_format, "HTK")


MAX_MEAN = 1e6  # of logarithms and cepstra
MAX_PERIOD = 2**31 - 1  # of a frame, in the header of an HTK file


def check_numbers(config: FeatureConfig) -> None:
    """Check ranges that do not depend on the sample rate."""

    def expect(holds: bool, setting: str, expected: str) -> None:
        if not holds:
            raise SettingError(setting, getattr(config, SETTINGS[setting][0]), expected)

    expect(
        config.source_rate == 0 or 1 <= config.source_rate <= 1e7,
        "SOURCERATE",
        "a sample period in 100 ns units, 1 to 1e7, or 0 for that of the file",
    )
    expect(
        0 < config.target_rate <= MAX_PERIOD, "TARGETRATE", f"a frame period above 0, in 100 ns units, to {MAX_PERIOD}"
    )
    expect(0 < config.window_size <= MAX_PERIOD, "WINDOWSIZE", f"a length above 0, in 100 ns units, to {MAX_PERIOD}")
    expect(0 <= config.preemphasis <= 1, "PREEMCOEF", "a number from 0 to 1")
    suits_kaldi = not config.use_hamming and config.warp == 1 and config.base_kind != "PLP"
    expect(not config.kaldi or suits_kaldi, "KALDI", "F with PLP or warping, and USEHAMMING = F, as Kaldi has a window")
    expect(config.snip_edges or config.kaldi, "SNIPEDGES", "T, unless KALDI = T")
    expect(config.num_channels >= 1, "NUMCHANS", "at least 1")
    expect(config.lifter == 0 or 1 <= config.lifter <= 1e6, "CEPLIFTER", "0 (none), or 1 to 1e6")
    expect(0 < config.compression <= 10, "COMPRESSFACT", "a power above 0, to 10")
    expect(0 <= config.silence_floor <= 1000, "SILFLOOR", "0 dB or more, to 1000")
    for setting, largest in (("ADDDITHER", 32768.0), ("ESCALE", 1e6)):
        expect(abs(getattr(config, SETTINGS[setting][0])) <= largest, setting, f"-{largest:g} to {largest:g}")
    for setting in ("DELTAWINDOW", "ACCWINDOW", "THIRDWINDOW"):
        expect(
            1 <= getattr(config, SETTINGS[setting][0]) <= MAX_DELTA_WINDOW, setting, f"1 to {MAX_DELTA_WINDOW} frames"
        )
    check_speech_mean(config, expect)
    expect(not config.remove_noise or config.sphinx, "REMOVENOISE", "F, unless SPHINX = T")
    if config.sphinx:
        expect(config.base_kind == "MFCC" and config.warp == 1.0, "SPHINX", "F, unless for MFCC without WARPFREQ")
        expect(not config.zero_mean_source, "ZMEANSOURCE", "F with SPHINX = T")
        expect(not config.has("E"), "SPHINX", "F with _E")
    check_toolkit(config, expect)
    if config.base_kind in CEPSTRAL_KINDS:
        expect(config.num_cepstra >= 1, "NUMCEPS", "at least 1")
    if config.base_kind == "MFCC":
        expect(config.num_cepstra <= config.num_channels, "NUMCEPS", f"at most NUMCHANS, {config.num_channels}")
    if config.base_kind == "PLP":
        # The all-pole model is computed from NUMCHANS + 2 points of a symmetric spectrum.
        expect(1 <= config.lpc_order <= config.num_channels, "LPCORDER", f"1 to NUMCHANS, {config.num_channels}")
        expect(config.num_cepstra <= config.lpc_order, "NUMCEPS", f"at most LPCORDER, {config.lpc_order}")
    if config.low_frequency >= 0 and config.high_frequency >= 0:
        expect(config.low_frequency < config.high_frequency, "LOFREQ", f"less than HIFREQ, {config.high_frequency}")
    check_warping(config, expect)


def check_toolkit(config: FeatureConfig, expect: Callable[[bool, str, str], None]) -> None:
    """Check that settings do not contradict the conventions of another toolkit."""
    if not config.toolkit:
        return
    expect(config.toolkit in TOOLKITS, "TOOLKIT", ", ".join(TOOLKITS))
    kind = TOOLKITS[config.toolkit]
    expect(config.target_kind == kind, "TARGETKIND", f"{kind} with TOOLKIT = {config.toolkit}")
    if kind == "WAVEFORM":
        return
    for setting, holds, expected in (
        ("USEPOWER", config.use_power, "T"),
        ("USEHAMMING", not config.use_hamming, "F"),
        ("ZMEANSOURCE", not config.zero_mean_source, "F"),
        ("DOUBLEFFT", not config.double_fft, "F"),
        ("KALDI", not config.kaldi, "F"),
        ("WARPFREQ", config.warp == 1.0, "1"),
        ("PREEMCOEF", config.toolkit != "WHISPER" or config.preemphasis == 0, "0"),
    ):
        expect(holds, setting, f"{expected} with TOOLKIT = {config.toolkit}")


def check_speech_mean(config: FeatureConfig, expect: Callable[[bool, str, str], None]) -> None:
    """Check that the mean of speech fits the features, and that they tell the level of a frame."""
    if not config.speech_mean:
        return
    rows = config.num_centred
    expect(config.has("Z"), "SPEECHMEAN", "_Z in TARGETKIND, which subtracts it")
    in_range = all(abs(value) <= MAX_MEAN for value in config.speech_mean)
    expect(in_range, "SPEECHMEAN", f"numbers from {-MAX_MEAN:g} to {MAX_MEAN:g}")
    expect(len(config.speech_mean) == rows, "SPEECHMEAN", f"{rows} numbers, one for each coefficient of a frame")
    tells_level = config.base_kind == "FBANK" or config.has("0")
    expect(tells_level, "SPEECHMEAN", "FBANK, or cepstra with _0, which tell the level of a frame")


def check_warping(config: FeatureConfig, expect: Callable[[bool, str, str], None]) -> None:
    """Check the piecewise linear warp: it needs two corners, the lower first, and slopes above 0."""
    expect(0.1 <= config.warp <= 10, "WARPFREQ", "a factor from 0.1 to 10, usually 0.8 to 1.2")
    if config.warp == 1.0:
        return
    expect(config.warp_low_cutoff > 0, "WARPLCUTOFF", "a frequency above 0 when WARPFREQ is not 1")
    expect(
        config.warp_high_cutoff > config.warp_low_cutoff,
        "WARPUCUTOFF",
        f"more than WARPLCUTOFF, {config.warp_low_cutoff}, when WARPFREQ is not 1",
    )
