from acoustic.descriptions.builders.parts import BuilderOptions as BuilderOptions
from acoustic.descriptions.builders.recurrent import LstmOptions as LstmOptions
from acoustic.descriptions.builders.recurrent import SimpleRnnOptions as SimpleRnnOptions
from acoustic.descriptions.builders.simple import SimpleNetworkOptions as SimpleNetworkOptions
from acoustic.descriptions.builders.simple import build_simple_network as build_simple_network
