"""The kinds of models of others that become bundles, in the order in which they are tried."""

from recipes.foreign import ctc, kaldi, sphinx

CONVERTERS = (sphinx.CONVERTER, kaldi.CONVERTER, ctc.CONVERTER)
