"""The category of a message that no grammar knows well: a linear head over embedding and words."""

from retrieval.classifier.head import CategoryHead, is_unsure, text_of

__all__ = ["CategoryHead", "is_unsure", "text_of"]
