"""The command lines; the only place where arguments are parsed."""
