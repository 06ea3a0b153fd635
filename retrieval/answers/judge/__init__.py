"""The judge: one probability of right for each proposal, from named signals."""
