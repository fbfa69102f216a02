"""The names of HTK's configuration: supported, without effect, and refused, the last two with the reason.

Source: HTK Book 3.4, chapter "Configuration Variables" and section 5.18.  Defaults are in features/config.py.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

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


class Setting(NamedTuple):
    """A setting of HTK: the field of FeatureConfig, the parser of its text, and what it means."""

    field: str
    parse: Callable[[str], Any]
    meaning: str


SETTINGS: dict[str, Setting] = {
    "SOURCEFORMAT": Setting("source_format", parse_word, "format of the audio, which its header tells, too"),
    "SOURCEKIND": Setting("source_kind", parse_word, "kind of the input: `WAVEFORM`"),
    "SOURCERATE": Setting(
        "source_rate", parse_float, "sample period, 100 ns, to which audio is resampled; 0: that of each file"
    ),
    "STEREOMODE": Setting("channel", parse_channel, "channel of audio that has two"),
    "TARGETFORMAT": Setting("target_format", parse_word, "format of the features: `HTK`"),
    "TARGETKIND": Setting(
        "target_kind",
        parse_word,
        "kind of the features: FBANK, MELSPEC, MFCC or PLP with qualifiers, such as `FBANK_Z_D_A`; or `WAVEFORM`, "
        "samples from -1 to 1",
    ),
    "TARGETRATE": Setting("target_rate", parse_float, "frame period, 100 ns"),
    "SAVECOMPRESSED": Setting("save_compressed", parse_bool, "compress the files (`_C`)"),
    "SAVEWITHCRC": Setting("save_with_crc", parse_bool, "add a checksum to the files (`_K`)"),
    "NATURALWRITEORDER": Setting(
        "natural_write_order", parse_bool, "write in the byte order of the machine, not big-endian"
    ),
    "ADDDITHER": Setting(
        "dither",
        parse_float,
        "amplitude of the noise that is added to the samples; below 0: the same noise for every utterance",
    ),
    "ZMEANSOURCE": Setting("zero_mean_source", parse_bool, "subtract the mean of the samples of each frame"),
    "WINDOWSIZE": Setting("window_size", parse_float, "length of the window, 100 ns"),
    "USEHAMMING": Setting("use_hamming", parse_bool, "apply a Hamming window"),
    "KALDI": Setting(
        "kaldi",
        parse_bool,
        "Kaldi's conventions: its window, which needs `USEHAMMING = F`, filters of all bins within their limits, no "
        "floor of 1, and c0 divided by the square root of 2",
    ),
    "SNIPEDGES": Setting(
        "snip_edges",
        parse_bool,
        "with `KALDI`: F has a frame for every shift of the window, beyond the ends of the samples, too",
    ),
    "DOUBLEFFT": Setting("double_fft", parse_bool, "twice the FFT length that the window needs"),
    "PREEMCOEF": Setting("preemphasis", parse_float, "coefficient of the pre-emphasis"),
    "NUMCHANS": Setting("num_channels", parse_int, "number of filters"),
    "LOFREQ": Setting("low_frequency", parse_float, "lower limit of the filterbank, Hz; below 0: none"),
    "HIFREQ": Setting("high_frequency", parse_float, "upper limit of the filterbank, Hz; below 0: none"),
    "USEPOWER": Setting("use_power", parse_bool, "filter the power spectrum, not the magnitudes"),
    "WARPFREQ": Setting("warp", parse_float, "warping factor of vocal tract length normalisation; 1: none"),
    "WARPLCUTOFF": Setting("warp_low_cutoff", parse_float, "lower corner of the warping, Hz"),
    "WARPUCUTOFF": Setting("warp_high_cutoff", parse_float, "upper corner of the warping, Hz"),
    "NUMCEPS": Setting("num_cepstra", parse_int, "number of cepstra"),
    "CEPLIFTER": Setting("lifter", parse_float, "parameter of the liftering; 0: none"),
    "LPCORDER": Setting("lpc_order", parse_int, "order of the all-pole model of PLP"),
    "COMPRESSFACT": Setting("compression", parse_float, "exponent of PLP's compression"),
    "RAWENERGY": Setting("raw_energy", parse_bool, "take the energy before pre-emphasis and window"),
    "ENORMALISE": Setting("normalise_energy", parse_bool, "normalise the log energy in each utterance"),
    "ESCALE": Setting("energy_scale", parse_float, "scale of the normalised log energy"),
    "SILFLOOR": Setting("silence_floor", parse_float, "floor of the log energy, dB below the maximum of the utterance"),
    "DELTAWINDOW": Setting("delta_window", parse_int, "half width of the window of deltas, frames"),
    "ACCWINDOW": Setting("acceleration_window", parse_int, "half width of the window of accelerations, frames"),
    "THIRDWINDOW": Setting("third_window", parse_int, "half width of the window of third differentials, frames"),
    "SIMPLEDIFFS": Setting("simple_differences", parse_bool, "differences in place of regression"),
    "SPHINX": Setting("sphinx", parse_bool, "pre-emphasis, filters and logarithm of CMU Sphinx, for its models"),
    "TOOLKIT": Setting(
        "toolkit",
        parse_word,
        "`WHISPER` or `NEMO`: FBANK as these toolkits compute it, for their models, of whole utterances, which needs "
        "`USEPOWER = T` and `USEHAMMING = F`; `WAV2VEC2`: WAVEFORM with mean 0 and deviation 1",
    ),
    "REMOVENOISE": Setting(
        "remove_noise", parse_bool, "with SPHINX, reduce the noise of each filter as CMU Sphinx does"
    ),
    "SPEECHMEAN": Setting(
        "speech_mean",
        parse_floats,
        "mean of the static features over the speech of the training; then `_Z` subtracts one that follows speech",
    ),
}
VALUES: dict[Callable[[str], Any], str] = {  # what a parser takes, for the reference page
    parse_word: "word",
    parse_bool: "`T` or `F`",
    parse_float: "number",
    parse_floats: "numbers",
    parse_int: "whole number",
    parse_channel: "`LEFT` or `RIGHT`",
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
