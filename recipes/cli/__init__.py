"""The command lines, one file for each command (a catalogue).  Only this package parses arguments.

Open main.py first, then hcopy.py as an example of a command.
"""
