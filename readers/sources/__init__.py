"""Minibatch readers (a catalogue)."""
