"""The `argon` command: compiles graphs, decodes, aligns, recognises streams.  Open command.py first."""
