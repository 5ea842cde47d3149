"""Small programs to be written from words, and tried on hidden tests of which most are easy."""
