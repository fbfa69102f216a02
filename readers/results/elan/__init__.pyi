from readers.results.elan.document import ElanDocument as ElanDocument
from readers.results.elan.document import read_elan as read_elan
