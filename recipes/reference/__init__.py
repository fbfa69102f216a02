"""docs/reference.md, made from the tables of the code: functions, editing commands, parameters and their state.

python -m recipes.reference            writes docs/reference.md below the current directory
python -m recipes.reference --check    says whether it is as the code has it, exit status 1 if not
"""
