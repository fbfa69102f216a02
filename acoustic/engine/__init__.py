"""Executes a network: values and gradients."""
