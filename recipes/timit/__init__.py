"""The TIMIT recipe: phone recognition on the LDC disc or on a synthesised corpus of the same layout."""
