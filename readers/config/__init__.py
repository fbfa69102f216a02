"""The configuration language."""
