"""How well known words are pronounced: scores of phones, words and sentences, fitted to those of experts."""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
