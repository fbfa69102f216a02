"""Formats whose readers do what the fuzzer must find, for its own tests."""

import os
import random
import time

from tests.fuzz.format import Format, text

SOUND = b"1 2 3\n"


def dies(path) -> None:
    os.abort()


def hangs(path) -> None:
    while True:
        pass


def sleeps(path) -> None:
    time.sleep(600)


def grows(path) -> None:
    bytes(1 << 40)


def sometimes(broken):
    """Call `broken` for about one damaged file in three."""

    def use(path):
        content = path.read_bytes()
        if content != SOUND and random.Random(content).random() < 0.3:
            broken(path)

    return use


FORMATS = {
    name: Format(name, text(SOUND.decode()), use)
    for name, use in (
        ("sound", lambda path: None),
        ("dies", sometimes(dies)),
        ("hangs", sometimes(hangs)),
        ("sleeps", sometimes(sleeps)),
        ("grows", sometimes(grows)),
    )
}
