"""A graph of nodes: traversal, editing, storage."""
