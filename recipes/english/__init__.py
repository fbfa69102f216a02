"""The English bundle `en`: two free corpora, public-domain text and CMUdict, with copies as the world makes them."""
