# From the table in __init__.py, by `python -m tests.structure.test_faces`
from decoder.alignment.aligner import AlignedSpan as AlignedSpan
from decoder.alignment.aligner import Aligner as Aligner
from decoder.alignment.aligner import Alignment as Alignment
from decoder.alignment.average_job import AverageOptions as AverageOptions
from decoder.alignment.average_job import AverageResult as AverageResult
from decoder.alignment.average_job import average as average
from decoder.alignment.boundaries import BoundaryComparison as BoundaryComparison
from decoder.alignment.boundaries import compare_boundaries as compare_boundaries
from decoder.alignment.boundary_job import BoundaryResult as BoundaryResult
from decoder.alignment.boundary_job import score_boundaries as score_boundaries
from decoder.alignment.goodness import PhoneGoodness as PhoneGoodness
