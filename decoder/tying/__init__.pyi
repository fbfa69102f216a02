# From the table in __init__.py, by `python -m tests.structure.test_faces`
from decoder.tying.job import TieOptions as TieOptions
from decoder.tying.job import TieResult as TieResult
from decoder.tying.job import tie as tie
from decoder.tying.questions import phone_questions as phone_questions
from decoder.tying.runs import StateRun as StateRun
from decoder.tying.runs import TransitionCounts as TransitionCounts
from decoder.tying.runs import places_of as places_of
from decoder.tying.runs import state_runs as state_runs
from decoder.tying.state_files import StateFiles as StateFiles
from decoder.tying.statistics import Statistics as Statistics
from decoder.tying.system import TiedSystem as TiedSystem
from decoder.tying.system import tie_states as tie_states
from decoder.tying.trees import TreeOptions as TreeOptions
