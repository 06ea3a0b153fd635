"""What all tests share: generated examples are judged by what happens, not by how long it takes."""

from hypothesis import HealthCheck, settings

# Speed is measured in `bench/`. On a loaded machine a right example takes longer than 200 ms now
# and then, and drawing examples takes longer than Hypothesis expects.
settings.register_profile("aftercall", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("aftercall")
