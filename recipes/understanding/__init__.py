"""Spoken language understanding: the slots of flight queries, tagged by an LSTM."""
