"""A catalogue of the file formats that the fuzzer damages: one module for each family, with a tuple `FORMATS`."""

from tests.fuzz.format import Format
from tests.fuzz.formats import (
    chain,
    commands,
    corpora,
    dictionaries,
    graphs,
    htk,
    ivectors,
    kaldi,
    languages,
    lattices,
    models,
    networks,
    records,
    results,
    runs,
    sentences,
    sound,
    tables,
)

MODULES = (
    sound,
    htk,
    models,
    dictionaries,
    graphs,
    results,
    kaldi,
    tables,
    networks,
    languages,
    records,
    sentences,
    lattices,
    runs,
    commands,
    corpora,
    ivectors,
    chain,
)
FORMATS: dict[str, Format] = {form.name: form for module in MODULES for form in module.FORMATS}
