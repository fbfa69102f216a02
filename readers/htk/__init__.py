"""HTK file formats."""
