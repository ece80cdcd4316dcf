"""The command line of oasr: Typer commands over the engine. Start at `app.py`."""
