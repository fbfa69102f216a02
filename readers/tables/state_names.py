"""Names of HMM states, such as `aa_s2`, `eh_s2_1` and `sil[2]`: the phone model and the place in it."""

import re
from collections.abc import Sequence

from readers.errors import FormatError

_STATE_NAME = re.compile(r"(.+?)(?:_s([0-9]{1,9})(?:_.*)?|\[([0-9]{1,9})\])")


def model_of_state(name: str) -> tuple[str, int]:
    """(phone model, index in it) from the name of an HMM state; index 0 when the name has none.

    >>> model_of_state("aa_s2"), model_of_state("eh_s3_1"), model_of_state("sil[4]"), model_of_state("noise")
    (('aa', 2), ('eh', 3), ('sil', 4), ('noise', 0))
    """
    match = _STATE_NAME.fullmatch(name)
    if match is None:
        return name, 0
    return match.group(1), int(match.group(2) or match.group(3))


def state_map_of(states: Sequence[str]) -> dict[str, list[str]]:
    """The state map that the names of states imply, such as `aa_s2`, `eh_s2_1` and `sil[2]`.

    Parameters
    ----------
    states : sequence of str
        A state list.

    Returns
    -------
    dict of str to list of str
        Phone model -> its states, left to right.

    Raises
    ------
    FormatError
        When two states claim one place in a model.
    """
    places: dict[str, dict[int, str]] = {}
    for state in states:
        model, index = model_of_state(state)
        earlier = places.setdefault(model, {}).setdefault(index, state)
        if earlier != state:
            raise FormatError(
                f"state list: '{earlier}' and '{state}' are both state {index} of '{model}'; expected one; "
                "give a model state map instead"
            )
    return {model: [names[index] for index in sorted(names)] for model, names in places.items()}
