"""The plan of a pass: its steps, their order and their memory, made once for each number of columns.

Open execution_graph.py first, then pass_plan.py and buffer_sharing.py; node_table.py has what differs between types.
"""
