"""Designs in Verilog: read, compared with what they should do, and measured."""
