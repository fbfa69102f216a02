"""Recipe speechocean: English of Mandarin speakers, adults and children; see run.py."""
