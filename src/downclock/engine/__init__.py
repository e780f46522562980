"""THE SCHEDULER WITHOUT A CLOCK: facts in, decisions out, the book, worlds to play against."""
