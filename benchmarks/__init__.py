"""Measurements side by side with other programs; `make bench` runs them all."""
