"""Where minibatches come from and network outputs go, by the names that configurations use for them."""

from readers.config import Config
from readers.config_values import did_you_mean
from readers.corpus import Progress
from readers.errors import ConfigError
from readers.htk_mlf_reader import HTKMLFReader, Minibatch, Utterance
from readers.htk_mlf_writer import HTKMLFWriter

__all__ = ["HTKMLFReader", "HTKMLFWriter", "Minibatch", "Utterance", "open_reader", "open_writer"]

READERS = {"HTKMLFReader": HTKMLFReader}
WRITERS = {"HTKMLFWriter": HTKMLFWriter}


def open_reader(config: Config, rng_seed: int = 0, write: bool = False, progress: Progress | None = None):
    """The reader that a reader block's readerType names (default HTKMLFReader)."""
    return _pick(config, "readerType", READERS)(config, rng_seed, write, progress)


def open_writer(config: Config):
    """The writer that a writer block's writerType names (default HTKMLFWriter)."""
    return _pick(config, "writerType", WRITERS)(config)


def _pick(config: Config, key: str, types: dict[str, type]) -> type:
    name = config.text(key, next(iter(types)))
    by_lower = {known.lower(): value for known, value in types.items()}
    if name.lower() not in by_lower:
        raise ConfigError(
            f"{config.where(key)}: {config.full_name(key)} is {name!r}; expected {' or '.join(types)}"
            f"{did_you_mean(name, types)}"
        )
    return by_lower[name.lower()]
