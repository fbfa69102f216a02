"""The English bundle `en`: two free corpora, public-domain text and CMUdict, with multi-condition copies."""
