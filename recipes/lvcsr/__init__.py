"""The recipe for cross-word triphones with tied states on AN4."""
