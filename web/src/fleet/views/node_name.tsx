// A node by its name: a click compares it with all others.
import { equals } from "../logic/state";
import { useApp } from "./app";

/** `cluster/node` where there are several clusters. */
export function nodeExpression(name: string): string {
  const slash = name.indexOf("/");
  return slash < 0 ? equals("node", name) : `${equals("cluster", name.slice(0, slash))} and ${equals("node", name.slice(slash + 1))}`;
}

export function NodeName({ name, isAffected = false }: { name: string; isAffected?: boolean }) {
  const app = useApp();
  return (
    <button
      type="button" class={isAffected ? "node affected" : "node"} title={isAffected ? `${name} was affected: compare it with the others` : `${name} was well: compare it with the others`}
      onClick={() => app.move({ tab: "compare", a: nodeExpression(name), b: "" })}
    >
      {isAffected && <span aria-hidden="true">✕ </span>}
      {name}
    </button>
  );
}
