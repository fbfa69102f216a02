"""The kinds of models of others that become bundles, in the order in which they are tried."""

from recipes.foreign import ctc, htk, kaldi, sphinx

CONVERTERS = (sphinx.CONVERTER, kaldi.CONVERTER, htk.CONVERTER, ctc.CONVERTER)
