from readers.errors import ArgonautError as ArgonautError
from readers.errors import ConfigError as ConfigError
from readers.errors import FormatError as FormatError
from readers.errors import GraphError as GraphError
from readers.errors import ModelError as ModelError
from readers.errors import ShapeError as ShapeError
