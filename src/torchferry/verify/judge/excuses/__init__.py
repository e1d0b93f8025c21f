"""The innocent reasons for a difference, a file each: a claim, and the proof that it needs."""
