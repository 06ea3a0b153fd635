"""The answers: reading errors, proposing repairs, finding similar calls."""
