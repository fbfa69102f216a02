"""The recipe of cross-word triphones tied by decision trees, on AN4."""
