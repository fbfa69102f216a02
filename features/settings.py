"""The names of HTK's configuration: supported, without effect, and refused, the last two with the reason.

Source: HTK Book 3.4, chapter "Configuration Variables" and section 5.18.  Defaults are in features/config.py.
"""

import math
from collections.abc import Callable
from typing import Any

from readers.common.text import to_number

TRUE_WORDS = ("T", "TRUE", "1")
FALSE_WORDS = ("F", "FALSE", "0")


def parse_word(text: str) -> str:
    return text.strip().upper()


def parse_bool(text: str) -> bool:
    word = parse_word(text)
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ValueError("expected T or F")


def parse_float(text: str) -> float:
    try:
        number = to_number(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("expected a number")
    return number


def parse_floats(text: str) -> tuple[float, ...]:
    """Parse `14.2 13.9 ...`: numbers separated by blanks or commas."""
    return tuple(parse_float(part) for part in text.replace(",", " ").split())


def parse_int(text: str) -> int:
    number = parse_float(text)
    if not number.is_integer():
        raise ValueError("expected a whole number")
    return int(number)


def parse_channel(text: str) -> int:
    """Return the channel, counted from 0, of STEREOMODE."""
    word = parse_word(text)
    if word not in ("LEFT", "RIGHT"):
        raise ValueError("expected LEFT or RIGHT")
    return int(word == "RIGHT")


# HTK name -> (field of FeatureConfig, parser of its text).
SETTINGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "SOURCEFORMAT": ("source_format", parse_word),
    "SOURCEKIND": ("source_kind", parse_word),
    "SOURCERATE": ("source_rate", parse_float),
    "STEREOMODE": ("channel", parse_channel),
    "TARGETFORMAT": ("target_format", parse_word),
    "TARGETKIND": ("target_kind", parse_word),
    "TARGETRATE": ("target_rate", parse_float),
    "SAVECOMPRESSED": ("save_compressed", parse_bool),
    "SAVEWITHCRC": ("save_with_crc", parse_bool),
    "NATURALWRITEORDER": ("natural_write_order", parse_bool),
    "ADDDITHER": ("dither", parse_float),
    "ZMEANSOURCE": ("zero_mean_source", parse_bool),
    "WINDOWSIZE": ("window_size", parse_float),
    "USEHAMMING": ("use_hamming", parse_bool),
    "DOUBLEFFT": ("double_fft", parse_bool),
    "PREEMCOEF": ("preemphasis", parse_float),
    "NUMCHANS": ("num_channels", parse_int),
    "LOFREQ": ("low_frequency", parse_float),
    "HIFREQ": ("high_frequency", parse_float),
    "USEPOWER": ("use_power", parse_bool),
    "WARPFREQ": ("warp", parse_float),
    "WARPLCUTOFF": ("warp_low_cutoff", parse_float),
    "WARPUCUTOFF": ("warp_high_cutoff", parse_float),
    "NUMCEPS": ("num_cepstra", parse_int),
    "CEPLIFTER": ("lifter", parse_float),
    "LPCORDER": ("lpc_order", parse_int),
    "COMPRESSFACT": ("compression", parse_float),
    "RAWENERGY": ("raw_energy", parse_bool),
    "ENORMALISE": ("normalise_energy", parse_bool),
    "ESCALE": ("energy_scale", parse_float),
    "SILFLOOR": ("silence_floor", parse_float),
    "DELTAWINDOW": ("delta_window", parse_int),
    "ACCWINDOW": ("acceleration_window", parse_int),
    "THIRDWINDOW": ("third_window", parse_int),
    "SIMPLEDIFFS": ("simple_differences", parse_bool),
    "SPEECHMEAN": ("speech_mean", parse_floats),
}

_HEADER = "the header of each audio file contains this"
_LIVE = "it controls live audio, and features are computed from files"
_SILENCE = "it belongs to the silence detector, which USESILDET = T would switch on"
_VECTORS = "it belongs to vector quantisation, which the kind of the features does not include"
_LABELS = "labels are not processed"
_MODELS = "it belongs to programs that read HMMs, networks or dictionaries"
_CONSTRUCTION = "it belongs to programs that expand word networks"
_SHELL = "it concerns the handling of files, messages and faults, not the features"


def _each(names: str, reason: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


# HTK name -> why it has no effect, whatever its value.
WITHOUT_EFFECT: dict[str, str] = {
    "BYTEORDER": _HEADER,
    "NATURALREADORDER": _HEADER,
    "HEADERSIZE": "audio files without a header are read from their first byte, and only with the option rate",
    "NSAMPLES": _HEADER,
    **_each("AUDIOSIG LINEIN MICIN LINEOUT PHONESOUT SPEAKEROUT", _LIVE),
    **_each("MEASURESIL OUTSILWARN SELFCALSILDET SILENERGY SILMEAN SILSTD SILDISCARD SPEECHTHRESH", _SILENCE),
    **_each("SPCSEQCOUNT SPCGLCHCOUNT SILSEQCOUNT SILGLCHCOUNT SILMARGIN CALWINDOW", _SILENCE),
    **_each("VQTABLE NSTREAMS", _VECTORS),
    "FOURTHWINDOW": "no kind of features has fourth differentials",
    **_each("SOURCELABEL TARGETLABEL LABELFORMAT STRIPTRIPHONES TRANSALT TRANSLEV", _LABELS),
    **_each("HLABELFILTER HLABELOFILTER", _LABELS),
    **_each("TRACE ABORTONERR NONUMESCAPES EXTENDFILENAMES MAXTRYOPEN PROTECTSTAKS", _SHELL),
    **_each("KEEPDISTINCT SAVEBINARY SAVEGLOBOPTS ORPHANMACFILE CHKHMMDEFS HMMSETKIND HMMDEFFILTER", _MODELS),
    **_each("HMMDEFOFILTER HMMLISTFILTER HMMLISTOFILTER HDICTFILTER HDICTOFILTER HNETFILTER HNETOFILTER", _MODELS),
    **_each("HLANGMODFILTER HLANGMODOFILTER RAWMITFORMAT", _MODELS),
    **_each("ALLOWCXTEXP ALLOWXWRDEXP FORCECXTEXP FORCELEFTBI FORCERIGHTBI FORCEOUT CFWORDBOUNDARY", _CONSTRUCTION),
    **_each("FACTORLM REMDUPPRON MARKSUBLAT", _CONSTRUCTION),
}

_CLUSTER = "normalisation with cluster files is not supported; use _Z, or PerDimMeanVarNormalization in the network"
_TRANSFORM = "linear transforms belong in the network, as a parameter matrix"

# HTK name -> reason why it is refused.
REFUSED: dict[str, str] = {
    "V1COMPAT": "the arithmetic of HTK version 1 is not supported",
    "USESILDET": "silence is not removed; cut the audio files beforehand",
    "SAVEASVQ": "vector quantisation (_V) is not supported",
    "CEPSCALE": "the scale of the cepstra is fixed; scale them in the network",
    **_each("MATTRANFN MATTRAN", _TRANSFORM),
    **_each("SIDEXFORM SIDEXFORMMASK SIDEXFORMEXT", _TRANSFORM),
    "HPARMFILTER": "filter programs are not supported; filter the files beforehand",
    "HWAVEFILTER": "filter programs are not supported; filter the files beforehand",
    "HPARMOFILTER": "filter programs are not supported; filter the files afterwards",
    "HWAVEOFILTER": "filter programs are not supported; filter the files afterwards",
    **_each("CMEANDIR CMEANMASK CMEANPATHMASK VARSCALEDIR VARSCALEMASK VARSCALEPATHMASK VARSCALEFN", _CLUSTER),
}

# Refused names that are accepted at HTK's default, which many configurations set explicitly.
DEFAULTS = dict.fromkeys(("V1COMPAT", "USESILDET", "SAVEASVQ"), FALSE_WORDS) | {"CEPSCALE": ("1", "1.0")}


def is_default(name: str, text: str) -> bool:
    """Whether a refused name has HTK's default value."""
    return parse_word(text) in DEFAULTS.get(name, ())
