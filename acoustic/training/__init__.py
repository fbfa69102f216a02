"""Learning: gradient descent, its update rules, its control of rates and sizes, and what it leaves on disk."""
