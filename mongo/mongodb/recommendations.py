"""Recommendations that somebody took up."""

from mongo import codec
from mongo.mongodb import bulk
from mongo.mongodb.collections import Collections, key
from mongo.records import StoredRecommendation


async def put(db: Collections, recommendation: StoredRecommendation) -> None:
    """Keep what was done about a recommendation, in the place of what was done before."""
    record = {
        "_id": key(recommendation.workspace, recommendation.recommendation_id),
        "workspace": recommendation.workspace,
        "recommendation_id": recommendation.recommendation_id,
        "state": recommendation.state,
        "changed_us": codec.to_microseconds(recommendation.changed_at),
        "data": recommendation.data,
        "reason": recommendation.reason,
        "changed_by": recommendation.changed_by,
    }
    await bulk.put(db.recommendations, [record])


async def list_all(db: Collections, workspace: str) -> list[StoredRecommendation]:
    """All of a workspace, the latest touched first."""
    records = db.recommendations.find({"workspace": workspace}).sort(
        [("changed_us", -1), ("recommendation_id", 1)]
    )
    return [
        StoredRecommendation(
            workspace=workspace,
            recommendation_id=record["recommendation_id"],
            state=record["state"],
            changed_at=codec.from_microseconds(record["changed_us"]),
            data=record["data"],
            reason=record["reason"],
            changed_by=record["changed_by"],
        )
        async for record in records
    ]
