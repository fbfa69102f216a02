"""`argonaut info` on a text archive whose first matrix is empty."""


def test_a_text_archive_that_begins_with_an_empty_matrix_is_known(user):
    user.write("a.ark", "u1 [ ]\nu2  [\n  1 2\n  3 4 ]\n")
    user.write("b.ark", "u2  [\n  1 2\n  3 4 ]\nu1 [ ]\n")
    first, second = user.run("info", "a.ark"), user.run("info", "b.ark")
    assert (first.status, second.status) == (0, 0), (first.err, second.err)
    assert "Kaldi archive of features, as text" in "".join(first.out)
    assert "".join(first.out).replace("a.ark", "b.ark").replace("u1", "u2") == "".join(second.out)
