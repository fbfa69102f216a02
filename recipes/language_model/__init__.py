"""The recipe for language models: class-based RNN and LSTM compared with n-grams."""
