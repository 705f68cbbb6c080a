"""The lake's schemas, and the SQL that reads rows once."""

import duckdb
import pyarrow as pa
import pytest

from necroscope.fleet.lake_tables import JSON_COLUMNS, LAKE_TABLES, RECEIPT_COLUMNS, TEXT_LIMITS, distinct_select


def test_every_table_starts_with_who_and_when() -> None:
    for schema in LAKE_TABLES.values():
        assert schema.names[:3] == ["cluster", "node", "time"]
        assert not any(field.nullable for field in list(schema)[:3])


def test_every_text_limit_names_a_column() -> None:
    texts = {field.name for schema in LAKE_TABLES.values() for field in schema if field.type == pa.string()}
    assert TEXT_LIMITS.keys() <= texts


def test_special_columns_exist() -> None:
    for special in (JSON_COLUMNS, RECEIPT_COLUMNS):
        assert all(set(columns) <= set(LAKE_TABLES[table].names) for table, columns in special.items())


@pytest.mark.parametrize("table", LAKE_TABLES)
def test_the_same_row_twice_is_read_once(table: str) -> None:
    values = {"string": "a", "bool": True}
    row = {field.name: values.get(str(field.type), 1) for field in LAKE_TABLES[table]}
    again = row | dict.fromkeys(RECEIPT_COLUMNS.get(table, ()), 2)
    source = pa.Table.from_pylist([row, again, {**row, "node": "b"}], schema=LAKE_TABLES[table])
    with duckdb.connect() as connection:
        connection.register("source", source)
        found = connection.execute(distinct_select(table, "source"))
        assert [column[0] for column in found.description or ()] == LAKE_TABLES[table].names
        assert len(found.fetchall()) == 2
