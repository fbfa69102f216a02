from acoustic.actions.base import Action as Action
from acoustic.actions.base import ActionOptions as ActionOptions
from acoustic.actions.base import CommonSettings as CommonSettings
from acoustic.actions.base import ModelOptions as ModelOptions
from acoustic.actions.validation import CommandFigures as CommandFigures
from acoustic.actions.validation_job import ValidateResult as ValidateResult
from acoustic.actions.validation_job import validate as validate
from acoustic.actions.validation_options import ValidateOptions as ValidateOptions
