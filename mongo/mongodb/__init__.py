"""The log store on a MongoDB server: several processes, no transactions, fenced writes."""

from mongo.mongodb.opening import MongoOptions, open_mongo_store
from mongo.mongodb.store import MongoLogStore

__all__ = ["MongoLogStore", "MongoOptions", "open_mongo_store"]
