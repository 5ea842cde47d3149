"""Generation and training of small models in C++."""
