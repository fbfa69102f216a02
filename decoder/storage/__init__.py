"""Files of arrays that are mapped into memory, and the checks of what they contain.

Open mapped_file.py first; array_checks.py checks the indices and costs that compiled kernels follow.  installed.py
finds bundles by name, compression.py makes their files small.
"""
