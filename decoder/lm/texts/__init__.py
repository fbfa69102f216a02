"""Texts for language models: their sentences, and the words of numbers, dates and abbreviations.

Open reading.py first; number_names.py and rules.py read a table of a language, such as data/english.table;
normalisation.py has the job.
"""
