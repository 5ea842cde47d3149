"""Published systems, one file each; `index` finds and loads them."""
