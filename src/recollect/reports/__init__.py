"""Tables, figures and the page people look at."""
