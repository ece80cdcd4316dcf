"""Results on disk: rows, file names, formats, and the folder that survives a kill."""
