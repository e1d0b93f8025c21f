"""What a trial shows: outputs compared within a derived tolerance, and each excuse for a difference put to its proof."""
