"""Forced alignment."""
