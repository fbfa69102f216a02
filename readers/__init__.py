"""File formats, the configuration language and minibatch sources; knows nothing of signals, networks or search."""
