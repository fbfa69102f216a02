"""Counts of n-grams in large texts: tables of parts, their sum in bounded memory, files of counts.

Open tables.py first; runs.py merges tables that lie on the disk; job.py has the jobs, counts and vocabularies.
"""
