"""One file a command: flags in, library call, lines out."""
