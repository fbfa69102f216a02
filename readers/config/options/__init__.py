"""Options, declared once: name, type, default, unit, range and meaning of a setting, as a field of a dataclass.

For example::

    @dataclass(frozen=True, kw_only=True)
    class TreeOptions(Options):
        \"\"\"Options of the decision trees.\"\"\"

        min_frames: float = option(100.0, "minimum size of a leaf", unit="frames", least=0)

    TreeOptions(min_frames=50)                          # in Python
    TreeOptions.from_block(config.block("trees"))       # minFrames=50 in a configuration
    TreeOptions().to_flags()                            # the flags of the command line that differ from the defaults

`recipes/cli/flags.py` makes `--min-frames N` of the declaration, and `docs/reference_pages` a row of a table.  Each way
in has the same checks, and names the option as its user wrote it.
"""

from readers.config.options.declaration import Option, OptionFault, Range, given, option
from readers.config.options.names import idle_notes
from readers.config.options.options import Options, group, like, located_faults

__all__ = ["Option", "OptionFault", "Options", "Range", "given", "group", "idle_notes"]
__all__ += ["like", "located_faults", "option"]
