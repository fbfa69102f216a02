"""The recipe for spoken language understanding: slot tagging of flight queries with an LSTM."""
