from readers.language.grammars.hparse import parse_hparse as parse_hparse
from readers.language.grammars.jsgf import parse_jsgf as parse_jsgf
from readers.language.grammars.network import WordArc as WordArc
from readers.language.grammars.network import WordNetwork as WordNetwork
from readers.language.grammars.phrase_list import parse_phrase_list as parse_phrase_list
from readers.language.grammars.phrase_list import phrase_network as phrase_network
