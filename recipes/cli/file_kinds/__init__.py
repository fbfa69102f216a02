"""What `argonaut info` tells of a file: a module for each family of kinds, a function for each kind."""
