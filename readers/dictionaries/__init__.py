"""Pronunciation dictionaries of HTK, CMU, Kaldi and MFA, told apart by their content.

Open forms.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "forms": ["FORMS", "detect_form", "read_any_dictionary"],
        "options": ["DictionaryOptions", "WordList"],
        "phones": ["change_phones", "read_phone_replacements", "without_stress"],
    },
)
