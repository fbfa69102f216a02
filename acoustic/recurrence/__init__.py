"""Recurrent loops, interpreted and compiled."""
