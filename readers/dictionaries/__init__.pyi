from readers.dictionaries.forms import FORMS as FORMS
from readers.dictionaries.forms import detect_form as detect_form
from readers.dictionaries.forms import read_any_dictionary as read_any_dictionary
from readers.dictionaries.options import DictionaryOptions as DictionaryOptions
from readers.dictionaries.options import WordList as WordList
from readers.dictionaries.phones import change_phones as change_phones
from readers.dictionaries.phones import read_phone_replacements as read_phone_replacements
from readers.dictionaries.phones import without_stress as without_stress
