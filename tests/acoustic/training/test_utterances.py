"""Training on utterances whose frames are kept in order."""

from types import SimpleNamespace

import pytest

from acoustic.training.evaluation import check_inputs
from readers.errors import ConfigError


def test_whole_utterances_are_refused_by_name():
    with pytest.raises(ConfigError, match="cvReader: frameMode is false; expected true"):
        check_inputs(SimpleNamespace(inputs=[]), SimpleNamespace(in_sequence=True), "cvReader")
