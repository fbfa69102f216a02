# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.config.check import CheckedConfig as CheckedConfig
from readers.config.config import Config as Config
from readers.config.config import UnknownName as UnknownName
from readers.config.config import load_config as load_config
from readers.config.feature_record import FeatureRecord as FeatureRecord
from readers.config.hcopy import HCopyConfig as HCopyConfig
from readers.config.hcopy import read_hcopy_config as read_hcopy_config
from readers.config.scope import ConfigEntry as ConfigEntry
from readers.config.scope import ConfigScope as ConfigScope
from readers.config.side_files import SideFiles as SideFiles
from readers.config.side_files import read_side_file as read_side_file
from readers.config.side_files import side_file as side_file
from readers.config.side_files import write_side_file as write_side_file
from readers.config.syntax import Source as Source
from readers.config.syntax import Span as Span
from readers.config.values import Schedule as Schedule
