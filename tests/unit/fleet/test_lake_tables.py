"""The lake's schemas."""

import pyarrow as pa

from necroscope.fleet.lake_tables import JSON_COLUMNS, LAKE_TABLES, RECEIPT_COLUMNS, TEXT_LIMITS


def test_every_table_starts_with_who_and_when() -> None:
    for schema in LAKE_TABLES.values():
        assert schema.names[:3] == ["cluster", "node", "time"]
        assert not any(field.nullable for field in list(schema)[:3])


def test_every_text_limit_names_a_column() -> None:
    texts = {
        field.name
        for schema in LAKE_TABLES.values()
        for field in schema
        if field.type == pa.string()
    }
    assert TEXT_LIMITS.keys() <= texts


def test_special_columns_exist() -> None:
    for special in (JSON_COLUMNS, RECEIPT_COLUMNS):
        assert all(
            set(columns) <= set(LAKE_TABLES[table].names) for table, columns in special.items()
        )
