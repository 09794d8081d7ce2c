"""Watches a training script that knows nothing of it.

The folder ``site`` stands on PYTHONPATH of the script's process, so that its
``sitecustomize`` runs before the script. Hooks are set when the script imports a
framework; at the end of each training step they call `Observer.boundary`, which is
where the process tells the supervisor what it saw, waits for the next request, and
goes on. ``docs/observing.md`` has the protocol. The script's file is never changed.
"""
