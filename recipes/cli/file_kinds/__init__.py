"""The kinds of files that `argonaut info` knows: one module for each family, one function for each kind."""
