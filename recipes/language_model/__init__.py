"""The recipe of language models: class-based RNN and LSTM against n-grams."""
