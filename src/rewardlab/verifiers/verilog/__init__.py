"""Verilog designs: parsed, compared with their specification, and measured."""
