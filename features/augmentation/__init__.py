"""Augmentation of training data: copies of recordings with another speed or volume, with noise or reverberation.

Open settings.py first; mixing.py has the arithmetic, parallel.py works through a list, job.py writes lists.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "job": ["AugmentOptions", "AugmentResult", "augment"],
        "labels": ["stretch_labels"],
        "mixing": ["add_noise", "babble", "change_speed", "fit_length", "limit_peak", "mean_power", "reverberate"],
        "parallel": ["Made", "augment_recordings"],
        "settings": ["Augmentation", "Copy", "CopyOptions", "Recording"],
    },
)
