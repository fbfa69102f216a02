"""The best path of a lattice of the search."""

import numpy as np


def best_path(lattice):
    """(cost, links) of the cheapest path from start to end; of equal ones, that with the earlier link."""
    cost, last = np.full(lattice.num_nodes, np.inf), np.full(lattice.num_nodes, -1)
    cost[0] = 0.0
    for link in np.lexsort((np.arange(lattice.num_links), lattice.start)):  # nodes are in topological order
        through = cost[lattice.start[link]] + lattice.cost[link]
        if through < cost[lattice.end[link]]:
            cost[lattice.end[link]], last[lattice.end[link]] = through, link
    links, node = [], lattice.num_nodes - 1
    while node != 0:
        links.append(int(last[node]))
        node = int(lattice.start[last[node]])
    return float(cost[-1]), links[::-1]
