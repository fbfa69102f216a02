"""Node types: a file for each family of them, their base class and their registry."""
