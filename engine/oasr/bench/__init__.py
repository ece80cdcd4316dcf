"""Speed, latency, memory and error rate of a list: measured through `Engine.stream`, reported, compared."""
