"""New n-gram models made of others: mixtures written out as one model, and pruned models.

Open ngram_index.py first: the n-grams of a model as a tree; mixture.py and pruning.py work on it; job.py reads and
writes the files.
"""
