"""The rows of a journal's block by the decoder that needs no Arrow."""

from necroscope.model.reading import Rows
from necroscope.model.table import Table
from necroscope.segment.block import Block, payload_buffers, rows_of


def decode_block(table: Table, block: Block) -> Rows:
    return rows_of(table, block.header.rows, payload_buffers(table, block.raw()))
