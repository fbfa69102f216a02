"""The CNTK book's example setups (7.1.1-7.1.9) and recurrent networks on a corpus that a recipe has prepared."""
