"""Short orders, each of a quality that is a known function of its text: a world for judges, and for what rewards them."""
