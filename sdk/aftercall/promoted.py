"""The promoted version of a tool that is not registered as a tool of its own (seed 002). No I/O."""

from aftercall.models import Promotion, Tool


def promoted_tool(original: Tool, promotion: Promotion) -> Tool:
    """What a promotion puts in the place of a tool: the same tool in another version.

    Its implementation gets the key `evolved_file`, when the promotion has a file; one that is no
    object gives way.
    """
    implementation = original.implementation
    if promotion.evolved_file is not None:
        known = implementation if isinstance(implementation, dict) else {}
        implementation = {**known, "evolved_file": promotion.evolved_file}
    return original.model_copy(
        update={
            "version": promotion.evolved_version,
            "is_evolved": True,
            "implementation": implementation,
        }
    )
