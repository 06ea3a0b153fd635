"""The simulation's namespaces: their tools, and what is asked of them, in words.

Each namespace has its original (whose id is the namespace), an evolved version of it, and others
that are found by their descriptions. Its scenarios come in groups: a tool is good or bad at a
whole group. The words are real, so that nearness is what the model says it is.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capability:
    """One namespace."""

    name: str
    description: str
    """Of the original and of its evolved version."""
    others: dict[str, str]
    """Tool id to description."""
    groups: tuple[tuple[str, ...], ...]
    """Scenarios, by what makes a tool good or bad at them."""


def _filled(template: str, *words: str) -> tuple[str, ...]:
    return tuple(template.format(word) for word in words)


CAPABILITIES = (
    Capability(
        "translator",
        "Translates a text from one language to another.",
        {
            "docs_translate": "Translate technical documentation and keep its formatting.",
            "legal_lingua": "Translation of contracts and other legal texts by sworn terms.",
            "quick_phrase": "Short everyday phrases in forty languages, for travellers.",
        },
        (
            _filled("translate the legal contract with the supplier into {}",
                    "Spanish", "German", "French", "Italian", "Polish"),
            _filled("translate the API documentation to {} and keep the code blocks",
                    "Spanish", "Japanese", "French", "Portuguese", "Korean"),
            _filled("translate a customer's complaint e-mail from {} to English",
                    "Turkish", "German", "Dutch", "Greek", "Danish"),
            _filled("how do you say 'where is the {}' in Thai",
                    "station", "hospital", "market", "airport", "hotel"),
        ),
    ),
    Capability(
        "code_generator",
        "Generates source code from a description of what it should do.",
        {
            "test_writer": "Writes unit tests for existing functions with pytest or Jest.",
            "sql_builder": "Builds SQL queries from a question about tables.",
            "regex_maker": "Makes regular expressions from examples of what should match.",
            "script_kit": "Small shell and Python scripts to automate chores.",
        },
        (
            _filled("generate pytest unit tests for the {} module",
                    "parser", "billing", "login", "cache", "scheduler"),
            _filled("write a SQL query for the monthly revenue per {}",
                    "customer", "country", "product", "store", "salesperson"),
            _filled("write a regular expression that matches {}",
                    "e-mail addresses", "phone numbers", "ISO dates", "licence plates",
                    "IPv4 addresses"),
            _filled("write a script that renames all {} in a folder by date",
                    "photos", "invoices", "log files", "recordings", "scans"),
        ),
    ),
    Capability(
        "summarizer",
        "Summarizes a long text in a few sentences.",
        {
            "paper_digest": "Digests scientific papers: question, method, result, limits.",
            "meeting_minutes": "Turns meeting transcripts into decisions and action items.",
            "headline": "One headline for a news article.",
        },
        (
            _filled("summarize the research paper about {} for a lay reader",
                    "protein folding", "battery chemistry", "black holes", "malaria vaccines",
                    "coral reefs"),
            _filled("list decisions and action items from the transcript of the {} meeting",
                    "budget", "design", "hiring", "security", "marketing"),
            _filled("shorten the news article on the {} to two sentences",
                    "election", "flood", "strike", "merger", "heat wave"),
        ),
    ),
    Capability(
        "weather",
        "Weather forecasts and current conditions for a place.",
        {
            "marine_forecast": "Wind, waves and tides for sailors along the coast.",
            "climate_history": "Historic weather records: temperatures and rainfall of past years.",
            "storm_alerts": "Official warnings of storms, floods and heat for a region.",
            "mountain_report": "Snow depth, avalanche danger and summit weather in the mountains.",
        },
        (
            _filled("what will the weather be like in {} tomorrow",
                    "Lisbon", "Oslo", "Nairobi", "Toronto", "Seoul"),
            _filled("wave height and wind for sailing off {} this weekend",
                    "Brittany", "Cornwall", "Sardinia", "Crete", "Tasmania"),
            _filled("average rainfall in {} over the last ten years",
                    "Madrid", "Lima", "Cairo", "Mumbai", "Vienna"),
            _filled("avalanche danger and snow depth in {} today",
                    "Zermatt", "Chamonix", "Aspen", "Innsbruck", "Whistler"),
        ),
    ),
    Capability(
        "document_reader",
        "Extracts text and tables from documents.",
        {
            "invoice_scan": "Reads invoices and receipts: totals, dates, tax and supplier.",
            "table_lift": "Extracts tables from PDF files into spreadsheets.",
            "handwriting": "Recognizes handwritten notes and forms in photographs.",
        },
        (
            _filled("read the total and the tax from the invoice of the {}",
                    "electrician", "caterer", "landlord", "printer's shop", "airline"),
            _filled("extract the table of {} from the annual report PDF",
                    "revenues", "subsidiaries", "risks", "salaries", "emissions"),
            _filled("transcribe the handwritten {} in this photograph",
                    "letter", "recipe", "shopping list", "diary page", "medical note"),
            _filled("extract the plain text of a {} saved as PDF",
                    "novel", "manual", "thesis", "brochure", "court ruling"),
        ),
    ),
)  # fmt: skip
