"""The token-passing search."""
