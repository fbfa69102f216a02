"""The first demo of the CNTK book: two classes of points in the plane."""
