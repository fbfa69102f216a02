"""The CNTK book's first demo: two classes on a plane."""
