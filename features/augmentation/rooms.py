"""Impulse responses of simulated rooms: boxes whose six walls reflect alike, by the image method."""

import numpy as np

from readers.common.arrays import Float64Array

SOUND = 343.0  # m/s
SABINE = 0.161  # s/m
SMALLEST, LARGEST = (2.0, 2.0, 2.2), (10.0, 8.0, 4.0)  # m, sides of rooms that are drawn
DECAY = (0.15, 0.7)  # s, reverberation times that are drawn
DISTANCE = (0.2, 3.0)  # m, from speaker to microphone
LONGEST = 0.4  # s of a response; what comes later is below -35 dB in most rooms
MARGIN = 0.1  # m, from the walls
MOST_ABSORBED = 0.95


def room_response(rate: float, rng: np.random.Generator) -> Float64Array:
    """Return the impulse response of a room that is drawn: size, reverberation time, places of speaker and microphone.

    Parameters
    ----------
    rate : float
        Sample rate in Hz.
    rng : numpy.random.Generator

    Returns
    -------
    (M,) float64
    """
    size = rng.uniform(SMALLEST, LARGEST)
    microphone = rng.uniform(MARGIN, size - MARGIN)
    direction = rng.standard_normal(3)
    offset = direction / np.linalg.norm(direction) * rng.uniform(*DISTANCE)
    speaker = np.clip(microphone + offset, MARGIN, size - MARGIN)
    decay = rng.uniform(*DECAY)
    return image_response(size, speaker, microphone, reflection(size, decay), min(decay, LONGEST), rate)


def reflection(size: Float64Array, decay: float) -> float:
    """Return the reflection coefficient of the walls of a room with a reverberation time, by Sabine's formula.

    Parameters
    ----------
    size : (3,) array
        Sides in m.
    decay : float
        Time in s after which sound has decayed by 60 dB.

    Returns
    -------
    float
        Ratio of pressures; at least that of walls that absorb 95 % of the energy.
    """
    walls = 2 * (size[0] * size[1] + size[1] * size[2] + size[2] * size[0])
    absorbed = min(SABINE * float(np.prod(size)) / (float(walls) * decay), MOST_ABSORBED)
    return float(np.sqrt(1 - absorbed))


def image_response(
    size: Float64Array, speaker: Float64Array, microphone: Float64Array, reflected: float, seconds: float, rate: float
) -> Float64Array:
    """Return the impulse response between two places in a room.

    Each image of the speaker, mirrored by walls, contributes reflected^(number of walls) / (4 pi distance) at the
    nearest sample of its delay.

    Parameters
    ----------
    size : (3,) array
        Sides of the room in m.
    speaker, microphone : (3,) array
        Places in m, inside the room.
    reflected : float
        Reflection coefficient of the walls, a ratio of pressures.
    seconds : float
        Duration of the response; longer if the direct sound arrives later.
    rate : float
        Sample rate in Hz.

    Returns
    -------
    (M,) float64

    References
    ----------
    Allen and Berkley, Image method for efficiently simulating small-room acoustics, JASA 65(4), 1979.
    """
    direct = float(np.linalg.norm(speaker - microphone))
    num_samples = max(round(seconds * rate), round(direct / SOUND * rate)) + 1
    reach = num_samples / rate * SOUND
    squares, walls = zip(*(_images(*axis, reach) for axis in zip(size, speaker, microphone)))
    plane = (squares[0][:, None] + squares[1]).ravel()
    plane_walls = (walls[0][:, None] + walls[1]).ravel()
    near = plane <= reach**2
    plane, plane_walls = plane[near], plane_walls[near]
    response = np.zeros(num_samples)
    for square, wall in zip(squares[2], walls[2]):  # a layer of images at a time, to save memory
        distance = np.maximum(np.sqrt(plane + square), 1e-3)
        sample = np.rint(distance / SOUND * rate).astype(np.int64)
        inside = sample < num_samples
        amplitude = reflected ** (plane_walls + wall) / (4 * np.pi * distance)
        response += np.bincount(sample[inside], amplitude[inside], num_samples)
    return response


def _images(side: float, speaker: float, microphone: float, reach: float) -> tuple[Float64Array, Float64Array]:
    """Return the squared distances from the microphone of the images along an axis, and how many walls mirror them."""
    order = np.arange(-int(reach / (2 * side)) - 1, int(reach / (2 * side)) + 2)
    distances = [(1 - 2 * mirrored) * speaker + 2 * order * side - microphone for mirrored in (0, 1)]
    walls = [np.abs(order - mirrored) + np.abs(order) for mirrored in (0, 1)]
    return np.concatenate(distances) ** 2, np.concatenate(walls).astype(np.float64)
