"""Hot loops of this folder; arrays in, arrays out."""
