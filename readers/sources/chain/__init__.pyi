from readers.sources.chain.denominator_file import DenominatorFile as DenominatorFile
from readers.sources.chain.denominator_file import check_denominator as check_denominator
from readers.sources.chain.denominator_file import read_denominator as read_denominator
from readers.sources.chain.denominator_file import write_denominator as write_denominator
from readers.sources.chain.numerators import AlignedNumerator as AlignedNumerator
from readers.sources.chain.numerators import TranscriptNumerator as TranscriptNumerator
from readers.sources.chain.numerators import write_numerators as write_numerators
from readers.sources.chain.supervision_source import ChainSource as ChainSource
