"""The command lines, a file each (a catalogue); the only place where arguments are parsed.

Open main.py first, then one command as a model (hcopy.py).
"""
