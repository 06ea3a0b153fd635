"""Triggers that count rows: COUNT(*) walks an index, too slow for a health page."""


def counted(table: str, counter: str | None = None, *, into: str = "counters") -> tuple[str, str]:
    """Triggers that keep the table's counter, whatever statement changes the table."""
    counter = counter or table
    return (
        f"""
        CREATE TRIGGER {table}_count_up AFTER INSERT ON {table} BEGIN
            INSERT INTO {into} (workspace, {counter}) VALUES (NEW.workspace, 1)
            ON CONFLICT (workspace) DO UPDATE SET {counter} = {counter} + 1;
        END
        """,  # noqa: S608  # the tables are those of the layout
        f"""
        CREATE TRIGGER {table}_count_down AFTER DELETE ON {table} BEGIN
            UPDATE {into} SET {counter} = {counter} - 1 WHERE workspace = OLD.workspace;
        END
        """,  # noqa: S608  # the tables are those of the layout
    )
