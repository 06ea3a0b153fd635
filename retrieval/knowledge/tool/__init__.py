"""What is known of one tool: its profile, rules, repairs, runs, links and changes."""
