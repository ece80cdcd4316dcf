"""The offline executor: batching, encoder forwards, decode ticks, read-back, results."""
