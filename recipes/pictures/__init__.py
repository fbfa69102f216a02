"""Pictures of results: alignments, tuning, lattices, confusions; matplotlib is imported with the first one."""
