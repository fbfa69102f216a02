"""What HCopy is told: one frozen set of options, checked once, from Python or from an HTK configuration."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from features.settings import REFUSED, SETTINGS, is_harmless
from readers.errors import ConfigError

BASE_KINDS = ("FBANK", "MELSPEC", "MFCC", "PLP")
CEPSTRAL_KINDS = ("MFCC", "PLP")
QUALIFIERS = "E0NDATZCK"  # HTK's letters that a target may carry; V (vector quantisation) is not offered
SOURCE_FORMATS = ("WAV", "FLAC", "NIST", "HTK", "AIFF", "SUNAU8")
OTHER_KINDS = ("WAVEFORM", "LPC", "LPREFC", "LPCEPSTRA", "LPDELCEP", "IREFC", "USER", "DISCRETE", "ANON")
MAX_DELTA_WINDOW = 1000  # frames on either side; a slip of the pen must not ask for all memory


class SettingError(ConfigError):
    """A value that cannot be; `setting` is its HTK name, so that file and line can be added."""

    def __init__(self, setting: str, found: object, expected: str):
        super().__init__(f"{setting} = {found}; expected {expected}")
        self.setting = setting


@dataclass(frozen=True)
class FeatureConfig:
    """Options of feature extraction, each under HTK's name in `features.settings.SETTINGS`.

    Times are in ticks of 100 ns, frequencies in Hz, silence_floor in dB.  Frequencies below zero mean "no limit".
    Every value that does not depend on the sample rate is checked here; `ConfigError` names the HTK setting.
    Defaults are HTK's (HTK Book, section 5.18), except that target_rate has none: 10 ms is the common choice.
    """

    target_kind: str = "MFCC"
    target_rate: float = 100_000.0
    source_rate: float = 0.0  # 0: the file's own; else it must agree with the file
    source_kind: str = "WAVEFORM"
    source_format: str = ""  # informative: the audio reader goes by the file's content
    target_format: str = "HTK"
    save_compressed: bool = False
    save_with_crc: bool = True
    dither: float = 0.0  # uniform noise within +-dither; below 0: the same noise for every utterance
    zero_mean_source: bool = False
    window_size: float = 256_000.0
    use_hamming: bool = True
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
    seed: int = 0  # of the dither

    def __post_init__(self) -> None:
        check_kinds(self)
        check_numbers(self)

    @classmethod
    def from_hcopy(cls, settings: Mapping[str, str], **overrides) -> Self:
        """Options from HTK names and their text, as `readers.config.hcopy.read_hcopy_config` gives them.

        settings may have a method `where(name) -> "file:line"` and an attribute `source`, the file's name: one of them
        then opens every message.  overrides are fields of this class.  Raises ConfigError for unknown names (with the
        nearest known one), refused names (with the reason) and bad values.
        """
        where = getattr(settings, "where", lambda name: "configuration")
        source = getattr(settings, "source", "configuration")
        values = {}
        for name, text in settings.items():
            if is_harmless(name, text):
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
            place = where(fault.setting) if fault.setting in settings else source
            raise ConfigError(f"{place}: {fault}") from None

    @property
    def base_kind(self) -> str:
        return self.target_kind.split("_")[0]

    def has(self, qualifier: str) -> bool:
        """Whether the target carries `_qualifier`."""
        return qualifier in self.target_kind.split("_")[1:]

    @property
    def num_static(self) -> int:
        """Rows of the static block: coefficients, then c0, then log energy."""
        coefficients = self.num_cepstra if self.base_kind in CEPSTRAL_KINDS else self.num_channels
        return coefficients + self.has("0") + self.has("E")

    @property
    def dim(self) -> int:
        """Rows of the whole feature matrix."""
        return self.num_static * (1 + self.has("D") + self.has("A") + self.has("T")) - self.has("N")

    @property
    def file_kind(self) -> str:
        """TARGETKIND with _C and _K added as SAVECOMPRESSED and SAVEWITHCRC ask."""
        kind = self.target_kind
        for qualifier, wanted in (("C", self.save_compressed), ("K", self.save_with_crc)):
            if wanted and not self.has(qualifier):
                kind += f"_{qualifier}"
        return kind


def look_up(name: str, text: str, place: str):
    """(field, parser) of a known HTK name; refused and unknown names raise ConfigError."""
    if name in SETTINGS:
        return SETTINGS[name]
    if name in REFUSED:
        raise ConfigError(f"{place}: {name} = {text} is not supported: {REFUSED[name]}")
    nearest = difflib.get_close_matches(name, [*SETTINGS, *REFUSED], n=1, cutoff=0.5)
    hint = f"the nearest is {nearest[0]}" if nearest else "see `argonaut hcopy --help` for the list"
    raise ConfigError(f"{place}: unknown name {name}; expected a name of HTK's configuration; {hint}")


def check_kinds(config: FeatureConfig) -> None:
    """Formats, base kinds and the qualifiers that go together (HTK Book, section 5.11)."""
    base, *qualifiers = config.target_kind.split("_")
    kind = config.target_kind
    if base not in BASE_KINDS:
        known = "is a kind of HTK, but not offered" if base in OTHER_KINDS else "is no kind of HTK"
        raise SettingError("TARGETKIND", kind, f"{', '.join(BASE_KINDS)}; {base} {known}")
    for qualifier in qualifiers:
        if len(qualifier) != 1 or qualifier not in QUALIFIERS:
            raise SettingError("TARGETKIND", kind, f"qualifiers out of _{' _'.join(QUALIFIERS)}, not _{qualifier}")
    if len(set(qualifiers)) != len(qualifiers):
        raise SettingError("TARGETKIND", kind, "each qualifier once")
    for qualifier, needed in (("A", "D"), ("T", "A"), ("N", "E"), ("N", "D")):
        if qualifier in qualifiers and needed not in qualifiers:
            raise SettingError("TARGETKIND", kind, f"_{needed} where _{qualifier} is")
    if "0" in qualifiers and base not in CEPSTRAL_KINDS:
        raise SettingError("TARGETKIND", kind, f"_0 with {' or '.join(CEPSTRAL_KINDS)} only")
    if config.source_format and config.source_format not in SOURCE_FORMATS:
        raise SettingError("SOURCEFORMAT", config.source_format, f"one of {', '.join(SOURCE_FORMATS)}")
    if config.source_kind not in ("WAVEFORM", "ANON"):
        raise SettingError("SOURCEKIND", config.source_kind, "WAVEFORM: features are computed from audio only")
    if config.target_format != "HTK":
        raise SettingError("TARGETFORMAT", config.target_format, "HTK")


def check_numbers(config: FeatureConfig) -> None:
    """Ranges that hold at any sample rate."""

    def expect(holds: bool, setting: str, expected: str) -> None:
        if not holds:
            raise SettingError(setting, getattr(config, SETTINGS[setting][0]), expected)

    expect(config.source_rate >= 0, "SOURCERATE", "a sample period in 100 ns, or 0 for the file's own")
    expect(config.target_rate > 0, "TARGETRATE", "a frame period above 0, in 100 ns")
    expect(config.window_size > 0, "WINDOWSIZE", "a length above 0, in 100 ns")
    expect(0 <= config.preemphasis <= 1, "PREEMCOEF", "a number from 0 to 1")
    expect(config.num_channels >= 1, "NUMCHANS", "at least 1")
    expect(config.lifter >= 0, "CEPLIFTER", "0 (none) or more")
    expect(config.compression > 0, "COMPRESSFACT", "a power above 0")
    expect(config.silence_floor >= 0, "SILFLOOR", "0 dB or more")
    for setting in ("DELTAWINDOW", "ACCWINDOW", "THIRDWINDOW"):
        expect(
            1 <= getattr(config, SETTINGS[setting][0]) <= MAX_DELTA_WINDOW, setting, f"1 to {MAX_DELTA_WINDOW} frames"
        )
    if config.base_kind in CEPSTRAL_KINDS:
        expect(config.num_cepstra >= 1, "NUMCEPS", "at least 1")
    if config.base_kind == "MFCC":
        expect(config.num_cepstra <= config.num_channels, "NUMCEPS", f"at most NUMCHANS, {config.num_channels}")
    if config.base_kind == "PLP":
        # The all-pole model comes from NUMCHANS + 2 points of a symmetric spectrum.
        expect(1 <= config.lpc_order <= config.num_channels, "LPCORDER", f"1 to NUMCHANS, {config.num_channels}")
        expect(config.num_cepstra <= config.lpc_order, "NUMCEPS", f"at most LPCORDER, {config.lpc_order}")
    if config.low_frequency >= 0 and config.high_frequency >= 0:
        expect(config.low_frequency < config.high_frequency, "LOFREQ", f"less than HIFREQ, {config.high_frequency}")
    check_warping(config, expect)


def check_warping(config: FeatureConfig, expect) -> None:
    """The piecewise linear warp needs both corners, lower first, and slopes above 0."""
    expect(config.warp > 0, "WARPFREQ", "a factor above 0, about 0.8 to 1.2")
    if config.warp == 1.0:
        return
    expect(config.warp_low_cutoff > 0, "WARPLCUTOFF", "a frequency above 0 when WARPFREQ is not 1")
    expect(
        config.warp_high_cutoff > config.warp_low_cutoff,
        "WARPUCUTOFF",
        f"more than WARPLCUTOFF, {config.warp_low_cutoff}, when WARPFREQ is not 1",
    )
