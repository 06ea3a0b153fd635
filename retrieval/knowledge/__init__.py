"""What was learned from calls: pure values and their reading, below learning and answering."""
