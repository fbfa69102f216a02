from readers.tables.sphinx.definition import ModelDefinition as ModelDefinition
from readers.tables.sphinx.definition import read_definition as read_definition
from readers.tables.sphinx.parameters import dumped_weights as dumped_weights
from readers.tables.sphinx.parameters import read_feature_parameters as read_feature_parameters
from readers.tables.sphinx.parameters import read_gaussians as read_gaussians
from readers.tables.sphinx.parameters import read_mixture_weights as read_mixture_weights
from readers.tables.sphinx.parameters import read_sendump as read_sendump
from readers.tables.sphinx.parameters import read_transitions as read_transitions
