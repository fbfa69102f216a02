"""Training procedures besides plain gradient descent."""
