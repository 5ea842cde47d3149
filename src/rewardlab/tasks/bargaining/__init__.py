"""Talks between a seller and a buyer, whose utterances have known effects."""
