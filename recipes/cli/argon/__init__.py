"""The `argon` command, which compiles graphs, decodes, aligns and recognises streams.  Open command.py first."""
