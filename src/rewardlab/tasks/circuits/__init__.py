"""Boolean circuits, to be written in Verilog."""
