"""The leagues, one a file: the methods of a family, the worlds in which they meet, and what decides between them."""
