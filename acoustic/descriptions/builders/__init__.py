"""Predefined networks (SimpleNetworkBuilder)."""
