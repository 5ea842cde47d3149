"""Small web pages, to be written in HTML."""
