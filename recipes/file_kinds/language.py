"""Figures of dictionaries and language models."""

from collections import Counter

from recipes.file_kinds.figures import Figures


def dictionary(path: str) -> Figures:
    from readers.dictionaries.forms import read_any_dictionary

    entries = read_any_dictionary(path)
    phones = {phone for entry in entries for phone in entry.phones}
    words = Counter(entry.word for entry in entries)
    return [
        ("words", f"{len(words)}, {sum(n > 1 for n in words.values())} of them with several pronunciations"),
        ("entries", f"{len(entries)} pronunciations"),
        ("phones", f"{len(phones)}: {' '.join(sorted(phones)[:12])}" + (" ..." if len(phones) > 12 else "")),
        ("probability", f"given for {sum(entry.probability is not None for entry in entries)}"),
        ("output", f"given for {sum(entry.output is not None for entry in entries)}"),
    ]


def arpa(path: str) -> Figures:
    from readers.language.arpa import read_arpa

    arpa = read_arpa(path)
    figures: Figures = [("order", arpa.order)]
    figures += [(f"{k}-grams", len(order)) for k, order in enumerate(arpa.orders, 1)]
    special = [word for word in ("<s>", "</s>", "<UNK>", "<unk>") if word in set(arpa.vocabulary)]
    return [*figures, ("marks", " ".join(special) or "no <s>, </s> or <UNK>")]


def mapped_model(path: str) -> Figures:
    from decoder.lm.mapped_model import load_language_model

    model = load_language_model(path, verify=True)
    return [("order", model.order), ("words", len(model.vocabulary)), ("n-grams", model.num_arcs)]


def pronunciation_model(path: str) -> Figures:
    from decoder.g2p.model import G2P

    model = G2P.load(path)
    return [
        ("order", model.order),
        ("graphones", f"{len(model.language_model.vocabulary) - 2} pairs of a letter and its phones"),
        ("n-grams", model.language_model.num_arcs),
        ("letters", f"{len(model.letters)}: {''.join(sorted(model.letters))[:40]}"),
        ("phones", f"{len(model.phones)}: {' '.join(model.phones[:12])}" + (" ..." if len(model.phones) > 12 else "")),
        *model.about.items(),
    ]
