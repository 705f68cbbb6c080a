// Lists in the order that somebody chose: numbers by size, words as people sort them, what is missing last.

export type Sortable = string | number | null;

export interface Column<Row> {
  name: string;
  title: string;
  /** What it is sorted by. */
  value(row: Row): Sortable;
  isNumber?: boolean;
}

export function compare(a: Sortable, b: Sortable): number {
  if (a === b) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

/** `sort` is a column's name, with `-` before it from the largest down; an unknown one leaves the order as it came. */
export function sorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[], sort: string): Row[] {
  const isDown = sort.startsWith("-");
  const column = columns.find(({ name }) => name === sort.replace(/^-/, ""));
  if (!column) return [...rows];
  return [...rows].sort((a, b) => {
    const [first, second] = [column.value(a), column.value(b)];
    const isMissing = first === null || second === null;
    return isDown && !isMissing ? compare(second, first) : compare(first, second);
  });
}

/** A click: numbers begin with the largest, words with the first; a second click turns round. */
export function turned<Row>(sort: string, column: Column<Row>): string {
  const [first, second] = column.isNumber ? [`-${column.name}`, column.name] : [column.name, `-${column.name}`];
  return sort === first ? second : first;
}
