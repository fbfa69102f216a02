"""Writers of node outputs (a catalogue)."""
