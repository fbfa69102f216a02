"""Requests with a file: transcriptions, alignments and scores of pronunciation.

Open transcriptions.py first; requests.py reads the form of any of them and answers faults.
"""
