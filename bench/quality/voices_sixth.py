"""How servers word what is wrong with a call, for the kinds of `kinds_sixth`: `voices.toml`."""

from bench.quality.voices_wild import read_voices

VOICES = read_voices("sixth")
