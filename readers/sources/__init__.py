"""Minibatch readers, in one folder for each kind of data: frames, records, sentences, examples, arrays.

`readerType` selects a reader in a configuration; minibatches/base.py has the table.  Open frames/htk_mlf_reader.py
first.
"""
