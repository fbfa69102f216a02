"""Pages of docs/reference that are generated from the code: NDL functions, MEL commands, parameters, settings of HCopy.

python -m docs.reference_pages            writes the pages below the current directory
python -m docs.reference_pages --check    exits with status 1 if a page differs from what the code gives
"""
