"""Word and character error rates, with the text normalisation that makes them comparable."""
