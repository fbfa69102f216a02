"""Audio files and streams."""
