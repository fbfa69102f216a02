"""The options of the job that finds the faults of a configuration."""

from dataclasses import dataclass

from readers.config.options import Options, option


@dataclass(frozen=True, kw_only=True)
class ValidateOptions(Options):
    """The configuration that is checked, and how thoroughly."""

    files: str = option(help="configuration files, as for cntk; or a bundle", flag="FILE", metavar="FILE[+FILE...]")
    settings: tuple[str, ...] = option(
        (), "settings that replace those of the files", flag="name=value", metavar="name=value"
    )
    quick: bool = option(False, "check only the headers of feature files, not the values")
