"""One module per framework: <name>_adapter.py with make() -> Adapter."""
