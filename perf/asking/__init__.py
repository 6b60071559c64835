"""How a question is asked: in turns, in a process of its own, onto a dated page."""
