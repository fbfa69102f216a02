from acoustic.descriptions.mel.command_table import CommandSpec as CommandSpec
from acoustic.descriptions.mel.names import EditedModel as EditedModel
from acoustic.descriptions.mel.parse import parse_script as parse_script
from acoustic.descriptions.mel.script import Editor as Editor
from acoustic.descriptions.mel.statements import Command as Command
from acoustic.descriptions.mel.statements import Description as Description
from acoustic.descriptions.mel.statements import MelScript as MelScript
from acoustic.descriptions.mel.statements import Snippet as Snippet
