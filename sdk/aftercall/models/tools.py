"""Tools as they are registered, and their fitness: which one to take, and what replaces it."""

import re
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic.config import JsonDict

from aftercall.models.base import (
    SAYS_SOMETHING,
    WHOLE,
    Id,
    Json,
    Name,
    Object,
    SaidText,
    Share,
    Text,
    Timestamp,
    WireModel,
    is_not_blank,
)
from aftercall.models.calls import Rejection, ToolAnnotations

_NUMBERS = re.compile(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?", re.ASCII)


MAX_TOOLS = 1000
"""Tools of one `PUT /tools`."""


class VersionNumber(NamedTuple):
    """A version; compares number by number, so that 1.10.0 comes after 1.9.0."""

    major: int
    minor: int = 0
    patch: int = 0

    def __str__(self) -> str:
        """Such as `1.2.0`."""
        return f"{self.major}.{self.minor}.{self.patch}"


def parse_version(text: str) -> VersionNumber:
    """Return the numbers of a version; a `ValueError` for any other text."""
    if (found := _NUMBERS.fullmatch(text.strip())) is None:
        raise ValueError(f"{text[:40]!r} is no version; write it like 1.2.0")
    return VersionNumber(*(int(number or 0) for number in found.groups()))


def same_version(one: str, other: str) -> bool:
    """Return whether two texts name one version: `1.2` and `1.2.0` do.

    Others must be equal as text.
    """
    try:
        return parse_version(one) == parse_version(other)
    except ValueError:
        return one == other


_VERSION = {
    "type": "string",
    "maxLength": 256,
    "pattern": r"^\s*v?[0-9]{1,9}(\.[0-9]{1,9}){0,2}\s*$",
}
Version = Annotated[
    Name, AfterValidator(lambda text: parse_version(text) and text), WithJsonSchema(_VERSION)
]
"""A version such as `1.2.0`: see `VersionNumber`."""


class ToolSpec(WireModel):
    """Body of `PUT /tools/{toolId}`."""

    namespace: Name | None = Field(default=None, description="The capability the tool serves.")
    name: Name = Field(examples=["git_log"])
    server_name: Name | None = Field(default=None, examples=["git"])
    version: Version | None = None
    description: Text = ""
    input_schema: Object | None = None
    annotations: ToolAnnotations = Field(default_factory=ToolAnnotations)
    tags: list[Name] = Field(default_factory=list, max_length=100)
    negative_tags: list[Name] = Field(default_factory=list, max_length=100)
    """What it is not to be offered for, such as `not-for-code-blocks`."""
    implementation: Json = None
    evolved_from: Name | None = None
    """The id of the tool that this one is a newer version of."""


class ContractChange(WireModel):
    """One thing that a tool asks of its callers otherwise than before."""

    at: Timestamp
    parameter: Name
    said: Text = Field(examples=["is now required"])


class Tool(ToolSpec):
    """A registered tool."""

    tool_id: Name
    schema_hash: str | None = None
    """SHA-256 of the canonical input schema."""
    updated_at: Timestamp
    is_evolved: bool = False
    """A promoted version, which stands in for the tool as registered."""
    contract_changes: list[ContractChange] = Field(
        default_factory=list,
        exclude_if=lambda changes: not changes,  # most tools have none
    )
    """How its input schema has changed since it was first registered, the latest last."""


class ToolList(WireModel):
    """Answer of `GET /tools`."""

    tools: list[Tool]


class NamedTool(ToolSpec):
    """A tool of `PUT /tools`, with its id."""

    tool_id: Name


class ToolsReceipt(WireModel):
    """Answer of `PUT /tools`: what became of each tool."""

    registered: int = Field(description="New ones, and those that are not as they were.")
    unchanged: int
    rejected: list[Rejection]


Severity = Literal["low", "medium", "high"]
"""How bad a marked failure was; what each takes off a tool's quality is seed 002's."""
ToolSource = Literal["evolved", "original", "semantic"]
"""Why a tool is a candidate: it was promoted, it is what was asked for, or it is like it."""
RankingMode = Literal["fitness", "seed"]
"""How candidates are ranked; in both the score is base x quality x failure demotion.

`fitness`: by the success to expect in scenarios like this one (`Factors.posterior`). `seed`: by the
formula of seed 002, with failures that wear off.
"""
EXPLORE = "Whether tools may be tried out that may change something; others always may."
MAX_SCENARIO = 10_000
"""Characters of a scenario; the model reads about the first thousand."""
Scenario = Annotated[
    Text,
    Field(max_length=MAX_SCENARIO),
    is_not_blank("describe what is to be done"),
    WithJsonSchema({"type": "string", "maxLength": MAX_SCENARIO, "pattern": SAYS_SOMETHING}),
]
"""What is to be done, in words: 1 to 10,000 characters that are not all blank."""


class FailureMark(WireModel):
    """Body of `POST /tools/{toolId}/failures`."""

    mark_id: Id | None = None
    """Made by the client: sending it twice counts once."""
    scenario: Scenario
    error_message: SaidText
    severity: Severity = "medium"
    version: Name | None = None
    """The version that failed; else that of the named call, or the one in force."""
    execution_id: Id | None = None
    """The recorded call that failed so; it and the mark count once."""
    negative_tags: list[Name] = Field(default_factory=list, max_length=20)
    """What the tool is no longer to be offered for, such as `not-for-code-blocks`."""


class MarkedFailure(WireModel):
    """Answer of `POST /tools/{toolId}/failures`: durable now."""

    mark_id: Id
    tool_id: Name
    version: Name | None
    severity: Severity
    duplicate: bool = Field(description="Whether this mark was known already.")
    quality: Share = Field(description="The tool's quality with this mark counted.")


class SimilarFailure(WireModel):
    """A past failure of a candidate in a scenario like the one asked about."""

    scenario: Text
    similarity: float = Field(description="Cosine of the scenarios, -1 to 1; higher is nearer.")
    weight: Share
    """How much it still counts; later successes and time wear it off."""
    at: Timestamp
    severity: Severity | None = Field(default=None, description="None when nobody marked it.")
    error_message: SaidText | None = None
    tags: list[str] = Field(default_factory=list)
    """`tool_failure`, the tool, and `severity_...` if marked."""


class Posterior(WireModel):
    """The success to expect in scenarios like the one asked about."""

    successes: float = Field(ge=0, description="Weighted by nearness and age.")
    failures: float = Field(ge=0, description="Weighted by nearness and age.")
    mean: Share = Field(description="With what is known of the tool and its namespace in general.")
    upper_bound: Share = Field(description="What counts for a tool that may be tried.")
    changed_at: Timestamp | None = None
    """Since when it does otherwise; what was before hardly counts."""


class Factors(WireModel):
    """What a score is made of: base x quality x failure demotion."""

    base: Share
    """1.0 evolved, 0.9 original, 0.8 x similarity for a semantic match; in the mode `fitness` those
    of a namespace's tools near 1 as more is known of the namespace."""
    similarity: float | None = None
    """Of scenario and tool, 0 to 1; None when nothing was searched for."""
    quality: Share
    """How the tool does; in the mode `fitness` no less than what is to be expected of it here."""
    failure_demotion: Share
    """In the mode `seed` 0.7 for each similar failure, less for those that are worn off; else the
    success to expect here, as a share of the quality."""
    similar_failures: list[SimilarFailure] = Field(default_factory=list)
    posterior: Posterior | None = Field(default=None, description="In the mode `fitness` only.")


class RankedTool(WireModel):
    """One candidate with its score, 0 to 1; higher is fitter."""

    tool: Tool
    score: Share
    source: ToolSource
    factors: Factors
    below_threshold: bool = False
    """The score is so low that the tool is hardly fit."""


class ExcludedTool(WireModel):
    """A tool that was not offered, and why."""

    tool_id: Name
    reason: str


class BestTool(RankedTool):
    """Answer of `GET /namespaces/{namespace}/best`: the fittest, and all that were compared."""

    candidates: list[RankedTool] = Field(description="Best first; the first is the answer.")
    excluded: list[ExcludedTool] = Field(default_factory=list)
    threshold: Share = Field(description="Scores below it are marked.")
    mode: RankingMode


class FindRequest(WireModel):
    """Body of `POST /tools/find`."""

    scenario: Scenario
    tags: list[Name] = Field(default_factory=list, max_length=100)
    """Tools with at least one of them."""
    limit: Annotated[int, Field(ge=1, le=50), *WHOLE] = 5
    mode: RankingMode = "fitness"
    explore: bool = Field(default=False, strict=True, description=EXPLORE)


class FoundTools(WireModel):
    """Answer of `POST /tools/find`, best first; empty when no tool fits."""

    candidates: list[RankedTool]
    excluded: list[ExcludedTool] = Field(default_factory=list)
    threshold: Share
    mode: RankingMode


class ToolFailures(WireModel):
    """Answer of `GET /tools/{toolId}/failures`: nearest to the scenario first, else latest."""

    failures: list[SimilarFailure]
    negative_tags: list[str] = Field(default_factory=list)
    """What the tool is not offered for, by marks and its own."""


class Namespace(WireModel):
    """One capability and who serves it."""

    namespace: Name
    tool_ids: list[Name]
    promoted_version: Name | None = None


class NamespaceList(WireModel):
    """Answer of `GET /namespaces`."""

    namespaces: list[Namespace]


_RELATIVE_PATH: JsonDict = {
    "pattern": r"^[^/\\\x00-\x1f\x7f-\x9f][^\\\x00-\x1f\x7f-\x9f]*$",
    "not": {"type": "string", "pattern": r"(^|/)\.\.(/|$)|^[A-Za-z]:|^[./]*$|^\s*$"},
}
"""As `aftercall.promotions_file.check_relative_path`, which the service asks."""


class Promotion(WireModel):
    """An evolved version stands in for the original of a namespace (seed 002)."""

    evolved_version: Version
    evolved_file: Text | None = Field(
        default=None,
        max_length=4096,
        description="Relative to the folder of the promotions file.",
        json_schema_extra=_RELATIVE_PATH,
    )
    original_version: Version
    reason: Text = Field(default="", json_schema_extra={"maxLength": 10_000})
    mutation: Text = Field(default="", json_schema_extra={"maxLength": 10_000})
    promoted_at: Timestamp | None = None
    """Set by the service when left out."""


class VersionTrials(WireModel):
    """How a version did, as far as it is remembered."""

    version: Name | None
    successes: int = Field(ge=0)
    failures: int = Field(ge=0)
    quality: Share


class PromotionStatus(Promotion):
    """A promotion as it stands, and whether it was a good one."""

    namespace: Name
    inherited_quality: Share = Field(description="The original's, when promoted.")
    evolved: VersionTrials
    original: VersionTrials
    fails_more: bool = Field(description="The evolved version fails more than the original did.")
    probability: Share
    """That the evolved version's failure rate is the higher one."""


PromotionAction = Literal["promoted", "rolled_back", "removed", "imported"]


class PromotionChange(WireModel):
    """One entry of a namespace's history; `promotion` is what held from then on, if anything."""

    at: Timestamp
    action: PromotionAction
    promotion: Promotion | None


class PromotionHistory(WireModel):
    """Answer of `GET /namespaces/{namespace}/promotion/history`, latest first."""

    namespace: Name
    changes: list[PromotionChange]


class PromotionsReceipt(WireModel):
    """Answer of `PUT /promotions`: what became of each entry."""

    added: list[Name]
    changed: list[Name]
    removed: list[Name]
    unchanged: list[Name]
    unknown_namespaces: list[Name]
    """Promoted all the same; no tool of these is registered yet."""


class Evolution(WireModel):
    """A promotion of the past, found by what it was for."""

    namespace: Name
    promotion: Promotion
    similarity: float = Field(description="Cosine, -1 to 1; higher is nearer.")


class EvolutionRequest(WireModel):
    """Body of `POST /evolutions/find`."""

    scenario: Scenario
    limit: Annotated[int, Field(ge=1, le=50), *WHOLE] = 5


class EvolutionList(WireModel):
    """Answer of `POST /evolutions/find`, nearest first."""

    evolutions: list[Evolution]


class LearnedSentence(WireModel):
    """What calls of a tool keep getting wrong, in one sentence; data, never an instruction."""

    text: Text
    failures: int = Field(ge=0, description="Calls that failed so.")
    confidence: Share
    """The lower bound of the share of repairs that it makes right."""
    alone: bool = Field(description="Whether one key alone says so.")


class LearnedContract(WireModel):
    """What is learned of a tool's calls next to what it states itself; the most frequent first."""

    tool_name: Name
    server_name: Name | None = None
    sentences: list[LearnedSentence]


class LearnedContracts(WireModel):
    """Answer of `GET /known-tools/contracts`: the tools that anything was learned of."""

    contracts: list[LearnedContract]
