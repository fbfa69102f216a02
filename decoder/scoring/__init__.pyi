# From the table in __init__.py, by `python -m tests.structure.test_faces`
from decoder.scoring.bootstrap import Comparison as Comparison
from decoder.scoring.bootstrap import compare_systems as compare_systems
from decoder.scoring.confidence import JudgedWords as JudgedWords
from decoder.scoring.confidence import Reliability as Reliability
from decoder.scoring.confidence import expected_calibration_error as expected_calibration_error
from decoder.scoring.confidence import judge_words as judge_words
from decoder.scoring.confidence import normalised_cross_entropy as normalised_cross_entropy
from decoder.scoring.confidence import reliability as reliability
from decoder.scoring.error_counts import EditPenalties as EditPenalties
from decoder.scoring.error_counts import Score as Score
from decoder.scoring.error_counts import ScoringResult as ScoringResult
from decoder.scoring.error_counts import score as score
from decoder.scoring.job import ComparedFiles as ComparedFiles
from decoder.scoring.job import ScoreOptions as ScoreOptions
from decoder.scoring.job import ScoreResult as ScoreResult
from decoder.scoring.job import score_files as score_files
from decoder.scoring.words import read_words as read_words
