"""Kaldi's files about phones, states and Gaussians: word boundaries, decision trees and Gaussian mixtures."""
