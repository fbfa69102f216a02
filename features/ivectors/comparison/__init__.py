"""Speaker verification: scores of pairs of i-vectors, and how often they tell speakers apart.

Open job.py first.  plda.py is the model behind the scores, trials.py the pairs, error_rates.py the errors.
"""
