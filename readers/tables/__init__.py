"""Small tables of other tools."""
