"""The `argon` command."""
