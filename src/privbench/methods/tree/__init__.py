"""Method `tree`: entity-weighted histograms, and trees of cliques of columns chosen with budget."""
