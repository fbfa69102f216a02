from acoustic.descriptions.opening import NetworkSource as NetworkSource
from acoustic.descriptions.opening import open_network as open_network
