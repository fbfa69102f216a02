"""Figures of HTK model definitions and decision trees."""

from readers.errors import FormatError
from recipes.file_kinds.figures import Figures


def mmf(path: str) -> Figures:
    from readers.htk.hmm_set import MACRO_KINDS
    from readers.htk.mmf import read_mmf

    hmm_set = read_mmf(path)
    options = hmm_set.options
    shared = [f"{len(parts)} {MACRO_KINDS[kind]}" for kind, parts in hmm_set.macros.items() if kind != "h" and parts]
    tees = [name for name, hmm in hmm_set.hmms.items() if hmm.is_tee]
    return [
        ("models", len(hmm_set.hmms)),
        ("shared", ", ".join(shared) or "nothing"),
        ("frames", f"{options.vector_size or 'size not given'}, {options.kind or 'kind not given'}"),
        *([("T-models", " ".join(tees))] if tees else []),
        ("+names", " ".join(hmm_set.hmms)),
    ]


def trees_or_script(path: str) -> Figures:
    from readers.htk.edit_script import read_edit_script
    from readers.htk.trees import read_trees

    try:
        trees = read_trees(path)
    except FormatError as fault:
        try:
            script = read_edit_script(path)
        except FormatError:
            raise fault from None
        return [
            ("questions", len(script.questions)),
            ("TB commands", len(script.clusterings)),
            ("other commands", " ".join(command for command, _ in script.others) or "none"),
        ]
    leaves = {leaf for tree in trees.trees.values() for leaf in tree.leaves}
    return [
        ("questions", len(trees.questions)),
        ("trees", f"{len(trees.trees)} of {len({phone for phone, _ in trees.trees})} phones"),
        ("leaves", f"{len(leaves)} tied states"),
    ]
