"""What runs, in which order and in which memory, decided once for a number of columns.

Open execution_graph.py first, then pass_plan.py and buffer_sharing.py.
"""
