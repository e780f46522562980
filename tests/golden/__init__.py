"""What every policy of the catalogue does, recorded, so that a refactoring changes nothing."""
