"""How HTK's formats are stored: the coding of values in feature files, and an index of long label files.

Open label_index.py first.
"""
