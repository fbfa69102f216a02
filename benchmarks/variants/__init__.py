"""The example setups of the CNTK book (7.1.1-7.1.9) and recurrent networks, on a corpus that a recipe has prepared.

config/ is the catalogue of their configurations; the README says what each is.
"""
