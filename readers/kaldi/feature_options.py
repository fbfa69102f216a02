"""Kaldi's configurations of features, such as `mfcc.conf` and `fbank.conf`, as configurations of HCopy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from readers.errors import ConfigError
from readers.htk.units import TICKS_PER_SECOND
from readers.kaldi.option_files import number_of, read_options

FeatureKind = Literal["mfcc", "fbank"]
# Kaldi's defaults of options that are converted.
_DEFAULTS = {
    **{"sample-frequency": "16000", "frame-length": "25", "frame-shift": "10", "preemphasis-coefficient": "0.97"},
    **{"num-mel-bins": "23", "low-freq": "20", "high-freq": "0", "num-ceps": "13", "cepstral-lifter": "22"},
    **{"remove-dc-offset": "true", "use-power": "true", "use-energy": "", "raw-energy": "true"},
    **{"snip-edges": "true", "energy-floor": "0"},
}
# The only values that are taken of others.
_ONLY = {
    **{"window-type": ("povey",), "round-to-power-of-two": ("true",)},
    **{"htk-compat": ("false",), "use-log-fbank": ("true",), "vtln-warp": ("1", "1.0")},
    **{"vtln-map": ("",), "utt2spk": ("",), "subtract-mean": ("false",)},
}
# Noise on the samples is left out, as in all comparisons with Kaldi, and resampling is the matter of the front end.
_WITHOUT_EFFECT = (
    *("allow-downsample", "allow-upsample", "blackman-coeff", "channel", "debug-mel", "dither"),
    *("max-feature-vectors", "min-duration", "output-format", "vtln-high", "vtln-low", "verbose"),
)


@dataclass(frozen=True)
class KaldiFeatures:
    """How features of Kaldi are computed.

    Attributes
    ----------
    settings : dict of str to str
        A configuration of HCopy.
    sample_rate : int
        In Hz.
    num_values : int
        Of a frame.
    last_is_first : bool
        Whether the last value, c0 or the log energy, is the first one in Kaldi.
    """

    settings: dict[str, str]
    sample_rate: int
    num_values: int
    last_is_first: bool


def read_feature_options(path: str | Path, kind: FeatureKind) -> KaldiFeatures:
    """Read a configuration of features.

    Parameters
    ----------
    path : path
    kind : {"mfcc", "fbank"}

    Returns
    -------
    KaldiFeatures

    Raises
    ------
    FormatError
        With file and line, for lines that are no options.
    ConfigError
        For options that are not supported, and values out of range.
    OSError
    """
    options = read_options(path)
    values = _DEFAULTS | {"use-energy": "true" if kind == "mfcc" else "false"} | options
    known = (*_DEFAULTS, *_ONLY, *_WITHOUT_EFFECT)
    for name, value in values.items():
        if name in _ONLY and value not in _ONLY[name]:
            raise ConfigError(f"{path}: {name} is {value[:40]!r}; expected {' or '.join(_ONLY[name])}")
        if name not in known:
            raise ConfigError(f"{path}: {name} is not supported; expected one of {', '.join(sorted(known))}")
    numbers = {name: number_of(path, name, value, most=1e6) for name, value in values.items() if name in _NUMBERS}
    rate = numbers["sample-frequency"]
    if not (rate >= 1000 and rate.is_integer()):
        raise ConfigError(f"{path}: sample-frequency is {rate:.10g}; expected 1000 to 1000000 Hz, a whole number")
    for name in ("num-ceps", "num-mel-bins"):
        if not (numbers[name] >= 1 and numbers[name].is_integer()):
            raise ConfigError(f"{path}: {name} is {values[name][:40]}; expected a whole number above 0")
    # Limits up to 0 are counted from the Nyquist frequency.
    low = numbers["low-freq"]
    high = numbers["high-freq"] if numbers["high-freq"] > 0 else rate / 2 + numbers["high-freq"]
    if not 0 <= low < high <= rate / 2:
        raise ConfigError(f"{path}: filters from {low:g} to {high:g} Hz; expected a range within 0 to {rate / 2:g} Hz")
    ticks = TICKS_PER_SECOND / 1000
    has_energy = _flag(path, "use-energy", values) == "T"
    base_kind = "MFCC" if kind == "mfcc" else "FBANK"
    settings = {
        "TARGETKIND": f"{base_kind}_E" if has_energy else "MFCC_0" if kind == "mfcc" else base_kind,
        "KALDI": "T",
        "USEHAMMING": "F",
        "ZMEANSOURCE": _flag(path, "remove-dc-offset", values),
        "USEPOWER": _flag(path, "use-power", values),
        "TARGETRATE": f"{numbers['frame-shift'] * ticks:.10g}",
        "WINDOWSIZE": f"{numbers['frame-length'] * ticks:.10g}",
        "PREEMCOEF": f"{numbers['preemphasis-coefficient']:.10g}",
        "NUMCHANS": f"{numbers['num-mel-bins']:.10g}",
        "LOFREQ": f"{low:.10g}",
        "HIFREQ": f"{high:.10g}",
    }
    if kind == "mfcc":
        settings |= {"NUMCEPS": f"{numbers['num-ceps'] - 1:.10g}", "CEPLIFTER": f"{numbers['cepstral-lifter']:.10g}"}
    if has_energy:
        if numbers["energy-floor"] != 0:
            raise ConfigError(f"{path}: energy-floor is {values['energy-floor']}; expected 0")
        settings |= {"RAWENERGY": _flag(path, "raw-energy", values), "ENORMALISE": "F"}
    if _flag(path, "snip-edges", values) == "F":
        settings["SNIPEDGES"] = "F"
    num_values = round(numbers["num-ceps"] if kind == "mfcc" else numbers["num-mel-bins"] + has_energy)
    return KaldiFeatures(settings, round(rate), num_values, has_energy or kind == "mfcc")


_NUMBERS = tuple(name for name, value in _DEFAULTS.items() if value and value != "true")


def _flag(path: str | Path, name: str, values: dict[str, str]) -> str:
    if values[name] not in ("true", "false"):
        raise ConfigError(f"{path}: {name} is {values[name][:40]!r}; expected true or false")
    return "T" if values[name] == "true" else "F"
