"""What a user runs: the command lines (cli/) and a folder for each recipe.

Nothing is above this room.  Open an4/run.py first: a recipe is a list of stages, most of them commands.
"""
