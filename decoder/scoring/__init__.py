"""Error rates as HTK's HResults counts them, and reports.

Open job.py, and error_counts.py first; words.py reads transcripts, report.py writes tables and confusions, bootstrap.py
compares two systems, confidence.py judges confidences.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
