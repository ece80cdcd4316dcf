"""From an Utterance to mono float32 samples at the rate of the model."""
