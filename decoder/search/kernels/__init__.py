"""The search, compiled.  A newcomer opens utterance.py first, then advance.py and token_store.py."""
