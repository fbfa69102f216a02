"""Model files, checkpoints and snapshots of a training run."""
