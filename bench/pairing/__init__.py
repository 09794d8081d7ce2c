"""Two ways of training the same model, timed against each other in paired blocks."""
