"""The AN4 recipe: letters, numbers and dates, with HTK alignments."""
