// A call tree that grows path by path, with a weight for the window and one for the baseline; answers as the server does.
import type { FlameAnswer } from "./answers";

export type Side = 0 | 1;

interface Node {
  name: number;
  totals: [number, number];
  selves: [number, number];
  calls: Map<number, Node>;
}

const makeNode = (name: number): Node => ({ name, totals: [0, 0], selves: [0, 0], calls: new Map() });

export class PathTree {
  private readonly root = makeNode(-1);
  private readonly weights: [number, number] = [0, 0];
  private readonly numbers = new Map<string, number>();

  /** Names that are numbered already, with their kinds. */
  constructor(private readonly names: string[] = [], private readonly kinds: number[] = []) {}

  /** The number of a name of a kind that may not be known yet. */
  number(name: string, kind: number): number {
    const key = `${kind} ${name}`;
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.names.push(name) - 1;
      this.kinds.push(kind);
      this.numbers.set(key, number);
    }
    return number;
  }

  /** A path from the outermost name. */
  add(path: readonly number[], weight: number, side: Side): void {
    let node = this.root;
    for (const name of path) {
      let next = node.calls.get(name);
      if (!next) node.calls.set(name, (next = makeNode(name)));
      next.totals[side] += weight;
      node = next;
    }
    node.selves[side] += weight;
    this.weights[side] += weight;
  }

  answer(isCompared: boolean, leftOut: string[]): FlameAnswer {
    const nodes = this.flattened();
    const [weight, before] = this.weights;
    const numbers = (value: (node: Node) => number) => Float64Array.from(nodes, ({ node }) => value(node));
    const arrays: FlameAnswer["arrays"] = {
      parent: Int32Array.from(nodes, ({ parent }) => parent),
      name: Int32Array.from(nodes, ({ node }) => node.name),
      kind: Uint8Array.from(this.kinds),
      total: numbers((node) => node.totals[0]),
      self: numbers((node) => node.selves[0]),
    };
    if (isCompared) {
      arrays["share"] = numbers((node) => node.totals[0] / (weight || 1));
      arrays["baseline_share"] = numbers((node) => node.totals[1] / (before || 1));
    }
    const header = { names: this.names, samples: weight, baseline_samples: before, from: "0", to: "0", left_out: leftOut };
    return { header, arrays };
  }

  /** Nodes by depth, and from left to right: callees of one caller by name. */
  private flattened(): { node: Node; parent: number }[] {
    const found: { node: Node; parent: number }[] = [];
    let level = [{ node: this.root, place: -1 }];
    while (level.length) {
      const next: typeof level = [];
      for (const { node, place } of level) {
        const calls = [...node.calls.values()].sort((a, b) => (this.names[a.name]! < this.names[b.name]! ? -1 : 1));
        for (const call of calls) next.push({ node: call, place: found.push({ node: call, parent: place }) - 1 });
      }
      level = next;
    }
    return found;
  }
}
