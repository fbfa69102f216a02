from decoder.grammars.grammar_graph import GrammarOptions as GrammarOptions
from decoder.grammars.grammar_graph import build_grammar_graph as build_grammar_graph
from decoder.grammars.grammar_graph import build_phone_loop as build_phone_loop
from decoder.grammars.job import GraphResult as GraphResult
from decoder.grammars.job import make_graph as make_graph
from decoder.grammars.options import GraphDictionary as GraphDictionary
from decoder.grammars.options import GraphFiles as GraphFiles
from decoder.grammars.reading import open_grammar as open_grammar
