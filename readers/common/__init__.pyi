# From the table in __init__.py, by `python -m tests.structure.test_faces`
from readers.common.environment import using_cores as using_cores
from readers.common.faults import Findings as Findings
from readers.common.file_part import FilePart as FilePart
from readers.common.files import atomic_write as atomic_write
from readers.common.files import held as held
from readers.common.files import require_writable as require_writable
from readers.common.report import RunReport as RunReport
from readers.common.text import read_lines as read_lines
from readers.common.text import read_text as read_text
