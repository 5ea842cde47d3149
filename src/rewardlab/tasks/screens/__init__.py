"""Screens of labelled boxes, to be clicked on one after the other."""
