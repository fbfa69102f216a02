"""Language models, vocabularies and text."""
