"""The files that name the states of monophones, and those of triphones in an alignment with tied states."""

from dataclasses import dataclass
from pathlib import Path

from decoder.tying.runs import places_of
from readers.config.options import Options, option
from readers.errors import ConfigError
from readers.htk.frame_labels import read_state_list
from readers.htk.trees import read_trees
from readers.tables.hmm_tables import read_state_map
from readers.tables.state_names import state_map_of


@dataclass(frozen=True, kw_only=True)
class StateFiles(Options):
    """The states of an alignment: a map or a list of the monophones' states, and trees if the states are tied.

    Raises
    ------
    OptionFault
        Unless one of `states` and `state_list` is given.
    """

    states: Path | None = option(None, "state map of monophones: lines `phone s1 s2 s3`")
    state_list: Path | None = option(None, "instead of {states}: state names such as aa_s2, one per line")
    trees: Path | None = option(None, "for an alignment in tied states: the trees that define them")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("states", bool(self.states or self.state_list), "is missing; expected it or {state_list}")
        self.require("states", not (self.states and self.state_list), "is given beside {state_list}; expected one")

    @property
    def file(self) -> Path | None:
        """The file with the states of the monophones."""
        return self.states or self.state_list

    def read(self) -> tuple[dict[str, tuple[str, int]], dict[str, list[str]]]:
        """Return the place of each state of the alignment, (model, number), and the states of each phone.

        Raises FormatError, and ConfigError for a phone whose name looks like a triphone's.
        """
        state_map: dict[str, list[str]] = {}
        if self.states:
            state_map.update((phone, list(names)) for phone, names in read_state_map(self.states).items())
        elif self.state_list:
            state_map.update(state_map_of(read_state_list(self.state_list)))
        mixed_up = [phone for phone in state_map if set(phone) & set("-+")]
        if mixed_up:
            raise ConfigError(
                f"{self.file}: phone '{mixed_up[0]}'; expected names without - and +, which separate the phones of a "
                "triphone (l-c+r)"
            )
        trees = read_trees(self.trees) if self.trees else None
        for phone, count in (trees.num_states if trees else {}).items():
            state_map.setdefault(phone, [f"{phone}_s{state}" for state in range(2, 2 + count)])
        return places_of(state_map, trees), state_map
