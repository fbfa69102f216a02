"""The recipe in which an encoder and a decoder learn to reverse strings of digits."""
