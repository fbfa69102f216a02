"""What every reader uses: files, text, faults, reports."""
