"""The store on a MongoDB server: several processes, no transactions, fenced writes."""
