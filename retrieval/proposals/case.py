"""The case: all that proposals may look at, gathered before they are made. No I/O from here on."""

from dataclasses import dataclass, field

from aftercall.json_values import JsonObject
from retrieval.knowledge.documents import SeedEntry
from retrieval.knowledge.parameter import ParameterProfile
from retrieval.knowledge.profile import ToolProfile
from retrieval.knowledge.rules import SignatureKnowledge, ToolKnowledge
from retrieval.parameters import ParameterView, ToolView
from retrieval.proposals.faults import faults_of
from retrieval.reading.faults import Fault
from retrieval.reading.reader import ErrorReading


@dataclass(frozen=True, slots=True)
class SimilarCall:
    """Parameters of a success that is near to the failed call; similarity is a cosine."""

    execution_id: str
    parameters: JsonObject
    similarity: float


@dataclass(frozen=True, slots=True)
class Case:
    """A failed call with what is known of its tool.

    `writes` is true unless the tool is known to only read: then no value is added that the schema
    or a repair rule does not give. `profile_is_current` is false when the profile was gathered
    under another schema than `schema`. Where the parameters are not known (`parameters_known`),
    they are empty and show nothing: there are only the faults that the error names.
    """

    parameters: JsonObject
    reading: ErrorReading
    view: ToolView | None = None
    profile: ToolProfile | None = None
    profile_is_current: bool = True
    schema_hash: str | None = None
    signature: SignatureKnowledge | None = None
    like_signatures: tuple[SignatureKnowledge, ...] = ()
    any_tool: ToolKnowledge | None = None
    similar: tuple[SimilarCall, ...] = ()
    context: str | None = None
    agent: str = ""
    seeds: tuple[SeedEntry, ...] = ()
    writes: bool = True
    schema: JsonObject | None = None
    parameters_known: bool = True
    faults: tuple[Fault, ...] = field(init=False)

    def __post_init__(self) -> None:
        """The error's faults, and those that the live schema shows beside them."""
        if not self.parameters_known:
            object.__setattr__(self, "faults", self.reading.faults)
            return
        faults = faults_of(self.parameters, self.reading, self.view, self.profile, self.schema)
        object.__setattr__(self, "faults", faults)

    def parameter(self, name: str | None) -> ParameterView | None:
        """What is known of a parameter."""
        return self.view.parameters.get(name) if self.view and name is not None else None

    def seen(self, name: str | None) -> ParameterProfile | None:
        """What successes and failures showed of a parameter."""
        return self.profile.parameters.get(name) if self.profile and name is not None else None
