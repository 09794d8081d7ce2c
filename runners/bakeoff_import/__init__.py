"""Reads a model of the user's own: a torch module becomes IR text and weights.

The program runs ``python -m bakeoff_import`` in the environment of the framework
and asks it line by line (``__main__``): to export the module, then to compute with
it in float64, so that the program can compare the import with its origin.
"""
