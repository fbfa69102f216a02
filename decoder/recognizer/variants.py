"""The methods of Recognizer that return another one: with other options, words, a grammar, hotwords or other audio."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from decoder.alignment.goodness import PhoneGoodness
from decoder.graph.transcript import TranscriptGraphs
from decoder.recognizer.assembly import decoder_with_words
from decoder.recognizer.bundle import G2P_MODEL, Bundle
from decoder.recognizer.calibration import Calibration
from decoder.recognizer.front_end import FrontEnd
from decoder.recognizer.grammar import Grammar
from decoder.recognizer.recording import AudioInput, AudioOptions
from decoder.search.decoder import Decoder
from decoder.search.hotwords import DEFAULT_SCORE, missing_words
from readers.common.faults import OnFault, listed, naming
from readers.common.text import canonical, spelling_of
from readers.errors import ConfigError, GraphError
from readers.htk.dictionary import Pronunciation
from readers.language.new_words import NewWord, read_new_words

if TYPE_CHECKING:
    from decoder.g2p.model import G2P
    from decoder.recognizer.forced_aligner import ForcedAligner
    from decoder.results.second_pass import SecondPass


Change = tuple[str, tuple[Any, ...], dict[str, Any]]  # a method with its arguments


class Variants:
    """The base class of Recognizer."""

    decoder: Decoder
    front_end: FrontEnd
    grammar: Grammar | None
    calibration: Calibration | None
    second_pass: "SecondPass | None"
    name: str
    _bundle: Bundle | None
    _audio: AudioInput
    guessed: tuple[Pronunciation, ...] = ()
    notes: tuple[str, ...] = ()
    goodness: PhoneGoodness | None = None  # of `with_phones`
    _alignment: TranscriptGraphs | None
    _aligner: "ForcedAligner | None" = None  # once it was needed
    _entries: tuple[Pronunciation, ...] = ()  # that were added to `_wordless`
    _new_words: Mapping[str, NewWord] = {}  # that have been added
    _wordless: tuple[Decoder, TranscriptGraphs] | None = None
    _changes: tuple[Change, ...] = ()  # the calls that made it from the one that was loaded

    def __copy__(self) -> Self:
        clone = object.__new__(type(self))
        clone.__dict__.update(self.__dict__)
        return clone

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path of the bundle and the calls of the methods below, not models and graphs."""
        if self._bundle is None:
            raise ConfigError(f"{self.name}: made from parts; expected one of Recognizer.load, which can be pickled")
        return reloaded, (type(self), self._bundle.path.resolve(), self._changes)

    def _changed(self, method: str, *arguments: Any, **options: Any) -> Self:
        """Return a copy that remembers the call from which it comes."""
        changed = self.__copy__()
        changed._aligner = None
        changed._changes = (*self._changes, (method, arguments, options))
        return changed

    @classmethod
    def load(cls, path: str | Path, verify: bool = True) -> Self:
        raise NotImplementedError

    def _transcript_graphs(self, purpose: str = "alignment") -> TranscriptGraphs:
        raise NotImplementedError

    def with_options(self, **options: object) -> Self:
        """Return a recogniser with other search options; everything else is shared.

        Parameters
        ----------
        **options
            Fields of `SearchOptions`, such as beam, lm_scale or lattice_beam (None: no lattices, no confidences).

        Returns
        -------
        Recognizer

        Raises
        ------
        ConfigError
            For an unknown option or a value out of range.

        Examples
        --------
        >>> Recognizer.load("digits.argo").with_options(beam=8.0).decoder.options.beam
        8.0
        """
        changed = self._changed("with_options", **options)
        changed.decoder = self.decoder.with_options(**options)
        return changed

    def with_grammar(
        self, grammar: str | Path | Sequence[str], kind: str | None = None, **options: float | bool
    ) -> Self:
        """Return a recogniser for the sentences of a grammar; models, features and search options are shared.

        Hotwords are kept, except for those with words that the grammar does not have.  Words that were added have their
        pronunciations in the grammar, too.

        Parameters
        ----------
        grammar : str, Path or list of str
            A file; or, with `kind`, the text of a grammar; or a list of phrases.  See `decoder.grammars.open_grammar`.
        kind : {"jsgf", "hparse", "phrases"}, optional
            Of a text.
        **options
            Fields of `GrammarOptions`; weight_scale is by default lm_scale.

        Returns
        -------
        Recognizer
            Its transcripts have `accepted` and `grammar_score`.  A bundle with a pronunciation model guesses how words
            that its dictionary lacks are said; `guessed` has the pronunciations.

        Raises
        ------
        ArgonautError
            For a malformed grammar, words that have no pronunciation, and a bundle without dictionary and tables.
        OSError

        Examples
        --------
        >>> Recognizer.load("digits.argo").with_grammar(["AB C", "C"]).transcribe("speech.wav").accepted
        True
        """
        changed = self._changed("with_grammar", grammar, kind, **options)
        search = self.decoder.options
        graphs = self._transcript_graphs("a grammar")
        changed.grammar = Grammar.open(grammar, kind, graphs, search, options, self._g2p())
        changed.guessed = (*self.guessed, *changed.grammar.guessed)
        changed.decoder = changed.grammar.decoder.with_hotwords_of(self.decoder)
        changed._wordless = None
        changed._entries = ()
        changed.calibration = None
        changed.second_pass = None
        return changed

    def with_second_pass(self, model: str | Path | None, **options: Any) -> Self:
        """Return a recogniser that rescores the lattices of utterances with a network; everything else is shared.

        Parameters
        ----------
        model : str, Path or None
            A recurrent language model, trained with LMSequenceReader on words as the recogniser writes them; None: no
            second pass.
        **options
            Fields of `SecondPassOptions`: weight, order, beam and consensus.

        Returns
        -------
        Recognizer
            Its confidences are posteriors in the new lattices, without the calibration of the bundle.  Without lattices
            (`lattice_beam=None`) there is no second pass.

        Raises
        ------
        ModelError
            For a network that is no language model.
        ConfigError
            For an unknown option, a value out of range, and for a recogniser with a grammar.
        OSError
        """
        from decoder.results.second_pass import SecondPass, SecondPassOptions  # loads networks of words

        if self.grammar is not None and model is not None:
            raise ConfigError(f"{self.name}: a second pass after a grammar; expected only one of them")
        changed = self._changed("with_second_pass", model, **options)
        changed.second_pass = None if model is None else SecondPass(model, SecondPassOptions(**options))
        changed.calibration = None
        return changed

    def with_hotwords(
        self,
        phrases: str | Path | Mapping[str, float] | Sequence[str],
        score: float = DEFAULT_SCORE,
        on_fault: OnFault | None = None,
        g2p: "G2P | str | Path | None" = None,
    ) -> Self:
        """Return a recogniser that prefers some phrases; everything else is shared.

        Parameters
        ----------
        phrases : str, Path, mapping of str to float, or list of str
            A file with lines `PHRASE :score` (see `readers.language.read_hotwords`), phrase -> score, or phrases.  They
            replace those given before.
        score : float
            Of phrases without one: the bonus for each of their words, subtracted from the cost of a path.
        on_fault : callable, optional
            Gets the error for words that are not in the recogniser's graph; the phrases with such words are then left
            out.
        g2p : G2P or path, optional
            A model of `argonaut g2p train`, which guesses the pronunciations of words that are not in the recogniser's
            graph, unless its dictionary has them.  The words are added as by `with_words`.

        Returns
        -------
        Recognizer
            With scores of 0, its results are the same to the bit, unless its graph has new words.  Its `guessed` has
            the pronunciations that were guessed.

        Raises
        ------
        ArgonautError
            For words that are not in the recogniser's graph (with on_fault only if no phrase is left), scores that
            are no numbers from -1000 to 1000, a malformed file, and g2p with a grammar or without what `align` needs.
        OSError

        Examples
        --------
        >>> recognizer = Recognizer.load("digits.argo").with_hotwords({"BA C": 2.0, "CAB": 4.5})
        >>> recognizer.transcribe("speech.wav").text
        'AB C'
        """
        changed = self._changed("with_hotwords", phrases, score, None if on_fault is None else _left_out, g2p)
        if g2p is not None:
            if self.grammar is not None:
                raise ConfigError(
                    f"{self.name}: guessed hotwords with a grammar, whose words are given; expected only one"
                )
            changed._add_words({word: NewWord() for word in missing_words(phrases, score, self.decoder._tables)}, g2p)
        changed.decoder = changed.decoder.with_hotwords(phrases, score, on_fault)
        return changed

    def with_words(
        self,
        words: str | Path | Mapping[str, str] | Sequence[str],
        g2p: "G2P | str | Path | None" = None,
        on_fault: OnFault | None = None,
        word_class: str = "",
    ) -> Self:
        """Return a recogniser that knows more words; everything else is shared.

        They are added to the decoding graph, which is not compiled again: ten thousand words take a few seconds.

        Parameters
        ----------
        words : str, Path, mapping of str to str, or list of str
            A file with lines `WORD`, `WORD phone phone ...` or `WORD weight ...`, and classes (see
            `readers.language.new_words`), word -> what follows it on a line, or words.  A word that differs only in
            case from exactly one word of the graph or of the bundle's dictionary is that word.  Words without a
            pronunciation have that of the dictionary or are guessed.  Of words that the graph has, only other
            pronunciations are added.
        g2p : G2P or path, optional
            A model of `argonaut g2p train`; by default that of the bundle.
        on_fault : callable, optional
            Gets the error for words that cannot be pronounced, which are then left out.
        word_class : str
            Word of the language model in whose place the words are said, unless a file gives their class.  A word that
            was added before keeps its class and its weight where this call gives none.

        Returns
        -------
        Recognizer
            Its `guessed` has the pronunciations that were guessed, and its `notes` a line if the graph had to be built
            anew.  Words that the language model lacks share the probability of their class by their weights; without
            one, that of the unknown word or, if there is none, of the rarest word.  See `with_hotwords` to prefer some.

        Raises
        ------
        ArgonautError
            For words that cannot be pronounced, without on_fault; for phones without a model, a malformed or empty
            file, a class that is no word of the language model, words that are reserved in graphs, a recogniser with a
            grammar, and one without language model, or without dictionary and tables of models.
        OSError

        Examples
        --------
        >>> recognizer = Recognizer.load("digits.argo").with_words({"CABBA": "c a b b a"})
        >>> "CABBA" in recognizer.decoder.graph.words
        True
        """
        if self.grammar is not None:
            raise ConfigError(f"{self.name}: new words with a grammar, whose words are given; expected them before it")
        modelled = self._transcript_graphs("new words").phones
        changed = self._changed("with_words", words, g2p, None if on_fault is None else _left_out, word_class)
        where = "words"
        if isinstance(words, (str, Path)):
            where = f"{words}"
            new_words = read_new_words(words, word_class)
        else:
            said = words if isinstance(words, Mapping) else dict.fromkeys(words, "")
            new_words = {canonical(word): NewWord(word_class=canonical(word_class)) for word in said}
            for word, line in said.items():
                new_words[canonical(word)].add(line.split(), f"words: {word}")
        for word, entry in new_words.items():
            if not word or word.split() != [word]:
                raise ConfigError(f"{where}: {word!r}; expected a word without blanks")
            outside = [phone for phone in itertools.chain(*entry.pronunciations) if phone not in modelled]
            if outside:
                raise ConfigError(f"{where}: {word}: no phone {outside[0]}; expected {', '.join(sorted(modelled))}")
        with naming(where):
            missing = changed._add_words(new_words, self._g2p() if g2p is None else g2p)
        if missing:
            fault = GraphError(f"{where}: no pronunciation of {listed(missing)}; expected it after the word")
            if on_fault is None:
                raise fault
            on_fault(fault)
        return changed

    def with_phones(self) -> Self:
        """Return a recogniser whose transcripts have phones with times and confidences; everything else is shared.

        Returns
        -------
        Recognizer
            Silence is a phone without a confidence; the others have that of an alignment, see
            `decoder.alignment.PhoneGoodness`.

        Raises
        ------
        ConfigError
            For a recogniser without dictionary and tables of models.

        Examples
        --------
        >>> [phone.text for phone in Recognizer.load("digits.argo").with_phones().transcribe("speech.wav").phones]
        ['sil', 'a', 'b', 'c', 'sil']
        """
        changed = self._changed("with_phones")
        changed.goodness = PhoneGoodness(self._transcript_graphs("phones"), self.front_end.scorer.posterior_scale)
        return changed

    def _g2p(self) -> "G2P | None":
        """Return the pronunciation model of the bundle."""
        if self._bundle is None or G2P_MODEL not in self._bundle.parts:
            return None
        from decoder.g2p import G2P  # slow to import

        return G2P.load(self._bundle.parts[G2P_MODEL])

    def _add_words(self, words: Mapping[str, NewWord], g2p: "G2P | str | Path | None") -> list[str]:
        """Add words to the graph, as far as they can be pronounced; return those that cannot."""
        decoder, graphs = self._wordless or (self.decoder, self._transcript_graphs("new words"))
        dictionary = graphs.dictionary or ()
        present = set(self.decoder.graph.words)
        spell = spelling_of({*present, *(entry.word for entry in dictionary)})
        spelled: dict[str, list[tuple[str, ...]]] = {}
        for word, entry in words.items():
            spelled.setdefault(spell(word), []).extend(entry.pronunciations)
        known = {(entry.word, entry.phones) for entry in (*dictionary, *self._entries) if entry.word in present}
        new_words = dict(self._new_words)
        for word, entry in words.items():
            new_words[spell(word)] = entry.completed_by(new_words.get(spell(word), NewWord()))
        added = {entry.word for entry in self._entries}
        is_moved = any(
            (new_words[word].word_class, new_words[word].share) != (earlier.word_class, earlier.share)
            for word, earlier in self._new_words.items()
            if word in added
        )
        self._new_words = new_words
        given = ((word, phones) for word, pronunciations in spelled.items() for phones in pronunciations)
        entries = [
            Pronunciation(word, None, None, phones)
            for word, phones in dict.fromkeys(given)
            if (word, phones) not in known
        ]
        lacking = {word: None for word, pronunciations in spelled.items() if not pronunciations and word not in present}
        entries += [entry for entry in dictionary if entry.word in lacking]
        if g2p is not None and lacking.keys() - {entry.word for entry in entries}:
            from decoder.g2p import complete_dictionary  # slow to import, and rarely needed

            guesses = complete_dictionary(dictionary, list(lacking), g2p, phones=graphs.phones)
            entries += guesses.for_decoding()
            self.guessed = (*self.guessed, *guesses.entries)
        entries = [entry for entry in entries if graphs.phones.issuperset(entry.phones)]
        if entries or is_moved:
            notes: list[str] = []
            self._wordless = decoder, graphs
            self._entries = (*self._entries, *entries)
            self._alignment = graphs.with_words(self._entries)
            extended = decoder_with_words(decoder, graphs, self._entries, self._new_words, notes.append)
            self.notes = tuple(notes)
            self.decoder = extended.with_options(**vars(self.decoder.options)).with_hotwords_of(self.decoder)
            present = set(self.decoder.graph.words)
        return [word for word in words if spell(word) not in present]

    def with_audio(self, **options: Any) -> Self:
        """Return a recogniser that takes other audio; everything else is shared.

        Parameters
        ----------
        **options
            Fields of `AudioOptions`: channel, upsample, raw and longest.

        Returns
        -------
        Recognizer

        Raises
        ------
        ConfigError
            For an unknown option or a value out of range.

        Examples
        --------
        >>> Recognizer.load("digits.argo").with_audio(channel="mix").transcribe("speech.wav").text
        'AB C'
        """
        names = sorted(field.name for field in fields(AudioOptions))
        for name in options.keys() - set(names):
            raise ConfigError(f"audio option {name}: unknown; expected one of {', '.join(names)}")
        changed = self._changed("with_audio", **options)
        changed._audio = AudioInput(self.front_end, replace(self._audio.options, **options))
        return changed


def _left_out(fault: Exception) -> None:
    """Ignore hotwords that were left out and reported before."""


def reloaded(kind: type[Variants], path: Path, changes: tuple[Change, ...]) -> Variants:
    """Return the recogniser that was pickled: open its bundle, and repeat the calls that changed it."""
    recognizer = kind.load(path)
    for method, arguments, options in changes:
        recognizer = getattr(recognizer, method)(*arguments, **options)
    return recognizer
