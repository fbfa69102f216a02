"""Models of others, converted to the parts of a bundle; open converters.py first."""
