"""What was learned of tools: profiles of their calls, repair rules, documents, recoveries."""
