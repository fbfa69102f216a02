"""The pages of the documentation, and what makes some of them."""
