// A list whose columns sort it; the order stands in the address.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useAtom } from "../../lib/atom";
import { sorted, turned, type Column } from "../logic/sorting";
import { useApp } from "./app";

export interface ShownColumn<Row> extends Column<Row> {
  cell(row: Row): ComponentChildren;
  isCut?: boolean;
}

interface SortedTableProps<Row> {
  id: string;
  rows: readonly Row[];
  columns: readonly ShownColumn<Row>[];
  keyOf(row: Row): string;
  /** The order until somebody chooses another. */
  order: string;
}

const MOST_ROWS = 300;

export function SortedTable<Row>({ id, rows, columns, keyOf, order }: SortedTableProps<Row>) {
  const app = useApp();
  const { sort } = useAtom(app.state);
  const [most, setMost] = useState(MOST_ROWS);
  const used = columns.some(({ name }) => name === sort.replace(/^-/, "")) ? sort : order;
  const shown = sorted(rows, columns, used);
  return (
    <div class="list">
      <table id={id}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Head key={column.name} column={column} sort={used} set={(next) => app.move({ sort: next })} />
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.slice(0, most).map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.name} class={[column.isNumber && "number", column.isCut && "cut"].filter(Boolean).join(" ")}>{column.cell(row)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length > most && (
        <button type="button" class="more" onClick={() => setMost(most + 1000)}>
          {(shown.length - most).toLocaleString("en")} more
        </button>
      )}
    </div>
  );
}

function Head<Row>({ column, sort, set }: { column: ShownColumn<Row>; sort: string; set: (sort: string) => void }) {
  const isUsed = sort.replace(/^-/, "") === column.name;
  const direction = !isUsed ? "none" : sort.startsWith("-") ? "descending" : "ascending";
  return (
    <th scope="col" aria-sort={direction} class={column.isNumber ? "number" : ""}>
      <button type="button" onClick={() => set(turned(sort, column))}>
        {column.title}
        <span aria-hidden="true">{isUsed ? (sort.startsWith("-") ? " ▼" : " ▲") : ""}</span>
      </button>
    </th>
  );
}
