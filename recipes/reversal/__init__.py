"""Strings of digits and their reversals, learned by an encoder and a decoder."""
