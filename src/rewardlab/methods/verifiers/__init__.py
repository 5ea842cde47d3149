"""Methods whose reward comes from a program, or a learnt verifier, that checks replies."""
