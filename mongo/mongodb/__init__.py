"""The store on a MongoDB server: several processes, no transactions, fenced writes."""

from mongo.mongodb.opening import MongoOptions, open_mongo_store
from mongo.mongodb.store import MongoStore

__all__ = ["MongoOptions", "MongoStore", "open_mongo_store"]
