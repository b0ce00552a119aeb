"""HOW the run is cut: the layout, what every dimension means on a rank, layers to stages, and what is legal."""
