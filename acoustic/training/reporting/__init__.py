"""Logs, progress display and plots of a training run."""
