"""What a user runs: the command lines and one folder per recipe."""
