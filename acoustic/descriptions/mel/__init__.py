"""The model editing language: scripts that take trained networks apart and put them together anew (CNTK book 4.2)."""
