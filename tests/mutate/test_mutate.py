"""The mutation check: which changes it makes, which of them it tries, with which tests, and how it counts."""

import ast

import pytest

from tests.mutate import trial
from tests.mutate.__main__ import read_results, report
from tests.mutate.changes import KINDS, changes_of
from tests.mutate.choice import chosen_tests
from tests.mutate.kernel_cache import forget_kernels, reached_kernels
from tests.mutate.sample import PER_FILE, ROOT, equivalent, sample
from tests.mutate.trial import Baseline, run_tests

SOURCE = b'''"""A module."""
from a import b
__all__ = ["f"]
LIMIT: int = 8


class Counter:
    @cached(maxsize=3)
    def f(self, x: "tuple[int, 2]", n=0.5):
        """Says x < 1."""
        if x < LIMIT and not self.done:  # a comment < 2
            raise ValueError(f"{x + 1} < 3")
        self.count = max(x, -n)
        self.log.append(x)
        print(x + 7)
        total = 0
        for i in range(x):
            if i % 2:
                continue
            total += i
        return total if True else "a" + "b"
'''
EXPECTED = {
    ("constant", "8", "9"),
    ("constant", "0.5", "1.0"),
    ("logic", "x < LIMIT and (not self.done)", "(x < LIMIT or not self.done)"),
    ("condition", "x < LIMIT and (not self.done)", "False"),
    ("comparison", "x < LIMIT", "(x <= LIMIT)"),
    ("logic", "not self.done", "(self.done)"),
    ("statement", "self.count = max(x, -n)", "pass"),
    ("function", "max", "min"),
    ("logic", "-n", "(n)"),
    ("statement", "self.log.append(x)", "pass"),
    ("constant", "0", "1"),
    ("condition", "i % 2", "False"),
    ("arithmetic", "i % 2", "(i // 2)"),
    ("constant", "2", "3"),
    ("statement", "continue", "pass"),
    ("arithmetic", "total += i", "total -= i"),
    ("statement", "total += i", "pass"),
    ("constant", "True", "False"),
    ("condition", "True", "False"),
}


def test_changes_of_a_file():
    changes = changes_of("a.py", SOURCE)
    assert {(c.kind, c.before, c.after) for c in changes} == EXPECTED
    assert {kind for kind, *_ in EXPECTED} == set(KINDS)
    assert {c.function for c in changes} == {"<module>", "Counter.f"}
    assert len({c.identity for c in changes}) == len(changes)


def test_a_change_replaces_its_own_text_alone():
    for change in changes_of("a.py", "# ü\n".encode() + SOURCE):
        changed = change.apply("# ü\n".encode() + SOURCE)
        ast.parse(changed)
        old, new = "# ü\n".encode() + SOURCE, changed
        assert old != new
        assert len(set(old.split(b"\n")) ^ set(new.split(b"\n"))) == 2
        assert old.split(b"\n")[change.line - 1] != new.split(b"\n")[change.line - 1]


def test_a_change_keeps_its_identity_when_lines_are_added_elsewhere():
    changes = {c.identity: (c.before, c.after) for c in changes_of("a.py", SOURCE)}
    assert changes == {c.identity: (c.before, c.after) for c in changes_of("a.py", b"\n\nX = f()\n" + SOURCE)}
    assert changes.keys().isdisjoint({c.identity for c in changes_of("b.py", SOURCE)})


@pytest.mark.slow
def test_the_sample_is_spread_over_files_functions_and_kinds_and_parses():
    chosen = sample("features", 12)
    assert len(chosen) == 12
    assert {change.kind for change in chosen} == set(KINDS)
    assert len({(change.path, change.function) for change in chosen}) == 12
    assert max(sum(other.path == change.path for other in chosen) for change in chosen) <= PER_FILE
    assert {c.identity for c in sample("features", 6)} <= {c.identity for c in chosen}
    for change in chosen:
        ast.parse(change.apply((ROOT / change.path).read_bytes()))


def test_every_equivalent_change_has_a_reason():
    assert all(len(reason) > 10 for reason in equivalent().values())


def test_tests_of_a_file_begin_with_those_of_its_name():
    assert chosen_tests("decoder/lattices/determinise.py")[0] == "tests/decoder/lattices/test_determinise.py"
    assert "tests/decoder/search/test_token_store.py" in chosen_tests("decoder/search/kernels/token_store.py")
    assert "tests/acoustic/nodes/test_every_node.py" in chosen_tests("acoustic/nodes/softmax.py")
    assert "tests/recipes/cli/argon/test_argon.py" in chosen_tests("recipes/cli/argon/command.py")


@pytest.mark.slow
def test_cached_kernels_that_call_changed_code_are_forgotten(tmp_path):
    reached = reached_kernels("decoder/search/kernels/token_store.py", ROOT)
    assert reached >= {
        f"decoder/search/kernels/{name}.py" for name in ("token_store", "advance", "utterance", "lattice")
    }
    assert "decoder/alignment/kernels.py" not in reached
    assert reached_kernels("recipes/stages.py", ROOT) == set()
    folder = tmp_path / "decoder" / "search" / "kernels" / "__pycache__"
    folder.mkdir(parents=True)
    names = ["advance.f-1.py311.nbi", "advance.f-1.py311.1.nbc", "advance.cpython-311.pyc", "tables.f-1.py311.nbi"]
    for name in names:
        (folder / name).touch()
    assert forget_kernels("decoder/search/kernels/advance.py", ROOT, tmp_path)
    assert sorted(file.name for file in folder.iterdir()) == sorted(names[2:])
    assert not forget_kernels("decoder/search/kernels/advance.py", ROOT, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("body", "status"), [("pass", 0), ("assert 0", 1), ("import time; time.sleep(60)", None)])
def test_a_run_of_tests_passes_fails_or_hangs(tmp_path, body, status):
    (tmp_path / "test_it.py").write_text(f"def test_it():\n    {body}\n")
    seconds = 6.0 if status is None else 60.0
    assert run_tests(tmp_path, ["-c", "/dev/null", "test_it.py"], seconds, tmp_path / "log") == status


def test_the_exit_status_says_whether_enough_were_caught(tmp_path, capsys):
    changes = changes_of("a.py", SOURCE)[:10]
    known = {changes[0].identity: "the value is never read"}
    results = {change.identity: {"outcome": "caught"} for change in changes[1:]}
    results[changes[1].identity]["outcome"] = "hang"
    results[changes[2].identity]["outcome"] = "survived"  # 8 of 9: 88.9 %
    assert report({"readers": changes}, known, results) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-2].split() == ["all", "10", "1", "8", "1", "88.9", "%"]
    assert f"survived: {changes[2]}" in printed
    results[changes[3].identity]["outcome"] = "survived"
    assert report({"readers": changes}, known, results) == 1


def test_results_are_read_back_and_survivors_are_tried_again(tmp_path):
    lines = ['{"identity": "a", "outcome": "survived"}', '{"identity": "b", "outcome": "caught"}']
    (tmp_path / "results.jsonl").write_text("\n".join([*lines, '{"identity": "c", "outcome": "hang"}\n']))
    assert read_results(tmp_path, False).keys() == {"a", "b", "c"}
    assert read_results(tmp_path, True).keys() == {"b", "c"}
    assert read_results(tmp_path / "nowhere", False) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "outcome"), [("assert double(3) == 6", "caught"), ("assert double(0) == 0", "survived"), ("", "survived")]
)
def test_a_change_is_tried_in_a_copy_that_is_removed_again(tmp_path, monkeypatch, check, outcome):
    """The copy has an earlier state of the file than that which the change was listed from."""
    unchanged, source = tmp_path / "unchanged", b"def double(x):\n    return 2 * x\n"
    (unchanged / "tests").mkdir(parents=True)
    (unchanged / "a.py").write_bytes(source)
    test = f"def test_double():\n    sys.path.insert(0, '.')\n    from a import double\n    {check}\n"
    (unchanged / "tests" / "test_a.py").write_text(f"import sys\n\n\n{test if check else ''}")
    monkeypatch.setattr(trial, "chosen_tests", lambda path: ["tests/test_a.py"])
    monkeypatch.setattr(trial, "forget_kernels", lambda path, root, copy: False)
    constant = next(c for c in changes_of("a.py", b"# later\n\n" + source) if c.kind == "constant")
    assert (constant.before, constant.after) == ("2", "3")
    assert trial.try_change(constant, tmp_path, Baseline({}, []), 0)[0] == outcome
    assert (unchanged / "a.py").read_bytes() == source
    assert not (tmp_path / "trial0").exists()
