"""Minibatch readers, one folder for each kind of data: frames, records, sentences, examples.

Open frames/htk_mlf_reader.py first.  `readerType` names a reader in a configuration; minibatches/base.py has the table.
"""
