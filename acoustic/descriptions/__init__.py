"""From text to a network: NDL, MEL and the predefined networks."""
