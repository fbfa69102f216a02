from acoustic.descriptions.kaldi_nnet import read_kaldi_network as read_kaldi_network
from acoustic.descriptions.opening import NetworkSource as NetworkSource
from acoustic.descriptions.opening import open_network as open_network
