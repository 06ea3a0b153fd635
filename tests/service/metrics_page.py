"""Reading the page of metrics in tests, by the library's own parser."""

from prometheus_client.parser import text_string_to_metric_families as parse_text

from tests.service.running_service import RunningService


class Samples(dict[tuple[str, frozenset[tuple[str, str]]], float]):
    """Values by name and labels."""

    def of(self, name: str, **labels: str) -> float:
        """The value of one series."""
        return self[name, frozenset(labels.items())]

    def names(self) -> set[str]:
        return {name for name, _ in self}

    def labels(self, name: str) -> set[str]:
        """Names of labels that the series of a name have."""
        return {label for each, labels in self for label, _ in labels if each == name}


def read_text(page: str) -> Samples:
    """The samples of a page in Prometheus' text format."""
    return Samples(
        {
            (each.name, frozenset(each.labels.items())): each.value
            for family in parse_text(page)
            for each in family.samples
        }
    )


def scrape(service: RunningService) -> Samples:
    """The page as it is now."""
    response = service.client.get("/metrics")
    assert response.status_code == 200, response.text
    return read_text(response.text)
