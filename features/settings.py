"""The names of HTK's configuration in HCopy: those that are supported, and those that are not, with the reason.

Source: HTK Book 3.4, chapter "Configuration Variables" and section 5.18.  Defaults are in features/config.py.
"""

import math
from collections.abc import Callable
from typing import Any

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
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("expected a number")
    return number


def parse_int(text: str) -> int:
    number = parse_float(text)
    if not number.is_integer():
        raise ValueError("expected a whole number")
    return int(number)


# HTK name -> (field of FeatureConfig, parser of its text).
SETTINGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "SOURCEFORMAT": ("source_format", parse_word),
    "SOURCEKIND": ("source_kind", parse_word),
    "SOURCERATE": ("source_rate", parse_float),
    "TARGETFORMAT": ("target_format", parse_word),
    "TARGETKIND": ("target_kind", parse_word),
    "TARGETRATE": ("target_rate", parse_float),
    "SAVECOMPRESSED": ("save_compressed", parse_bool),
    "SAVEWITHCRC": ("save_with_crc", parse_bool),
    "ADDDITHER": ("dither", parse_float),
    "ZMEANSOURCE": ("zero_mean_source", parse_bool),
    "WINDOWSIZE": ("window_size", parse_float),
    "USEHAMMING": ("use_hamming", parse_bool),
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
}

_LIVE = "it controls live audio input, and hcopy reads files"
_SILENCE = "the silence detector works on live audio, and hcopy reads whole files"
_CLUSTER = "normalisation with cluster files is not supported; use _Z, or PerDimMeanVarNormalization in the network"
_RAW_FORMAT = "the header of the audio file contains this; headerless formats are not supported"
_LABELS = "hcopy converts audio to features and does not process labels"
_MODELS = "it belongs to HTK's model tools, not to feature extraction"

# Unsupported HTK name -> reason.
REFUSED: dict[str, str] = {
    "V1COMPAT": "the arithmetic of HTK version 1 is not supported",
    "DOUBLEFFT": "the FFT length is the smallest power of two that is not below the window length",
    "VQTABLE": "vector quantisation (_V) is not supported",
    "SAVEASVQ": "vector quantisation (_V) is not supported",
    "MATTRANFN": "linear transforms belong in the network, as a parameter matrix",
    "HPARMFILTER": "filter programs are not supported; filter the files beforehand",
    "HPARMOFILTER": "filter programs are not supported; filter the files afterwards",
    "HWAVEFILTER": "filter programs are not supported; filter the files beforehand",
    "NATURALWRITEORDER": "HTK files are written big-endian, the standard byte order",
    "NATURALREADORDER": "the header of a source file determines its byte order",
    "BYTEORDER": "the header of a source file determines its byte order",
    "STEREOMODE": "sources have one channel; split the channels beforehand",
    "HEADERSIZE": _RAW_FORMAT,
    "NSAMPLES": _RAW_FORMAT,
    "AUDIOSIG": _LIVE,
    "LINEIN": _LIVE,
    "MICIN": _LIVE,
    "LINEOUT": _LIVE,
    "PHONESOUT": _LIVE,
    "SPEAKEROUT": _LIVE,
    "USESILDET": _SILENCE,
    "MEASURESIL": _SILENCE,
    "OUTSILWARN": _SILENCE,
    "SILMEAN": _SILENCE,
    "SILSTD": _SILENCE,
    "SILENERGY": _SILENCE,
    "SILDISCARD": _SILENCE,
    "SILGLCHCOUNT": _SILENCE,
    "SILSEQCOUNT": _SILENCE,
    "SILMARGIN": _SILENCE,
    "SPEECHTHRESH": _SILENCE,
    "SPCSEQCOUNT": _SILENCE,
    "SPCGLCHCOUNT": _SILENCE,
    "CALWINDOW": _SILENCE,
    "CMEANDIR": _CLUSTER,
    "CMEANMASK": _CLUSTER,
    "CMEANPATHMASK": _CLUSTER,
    "VARSCALEDIR": _CLUSTER,
    "VARSCALEMASK": _CLUSTER,
    "VARSCALEPATHMASK": _CLUSTER,
    "VARSCALEFN": _CLUSTER,
    "SIDEXFORM": _CLUSTER,
    "SOURCELABEL": _LABELS,
    "TARGETLABEL": _LABELS,
    "LABELFORMAT": _LABELS,
    "STRIPTRIPHONES": _LABELS,
    "TRANSALT": _LABELS,
    "TRANSLEV": _LABELS,
    "TRACE": "the option -v of the command prints messages",
    "MAXTRYOPEN": "a file that cannot be opened is reported, and the others go on",
    "EXTENDFILENAMES": "list lines are `source target`; archives with [start,end] are read by the feature readers",
    "NONUMESCAPES": _LABELS,
    "KEEPDISTINCT": _MODELS,
    "SAVEBINARY": _MODELS,
    "HMMDEFFILTER": _MODELS,
}

# Unsupported names that are harmless at HTK's default, which many configurations set explicitly.
HARMLESS = dict.fromkeys(
    ("V1COMPAT", "DOUBLEFFT", "SAVEASVQ", "NATURALWRITEORDER", "USESILDET", "MEASURESIL", "SAVEBINARY"), FALSE_WORDS
)
HARMLESS["MAXTRYOPEN"] = ("1",)


TALK = ("TRACE",)  # concerns only messages, so any value is harmless


def is_harmless(name: str, text: str) -> bool:
    """Whether an unsupported name has a value without effect."""
    return name in TALK or parse_word(text) in HARMLESS.get(name, ())
