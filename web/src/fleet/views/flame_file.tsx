// The flame graph of a group of nodes in a file of its own: the answer is within it, nothing is asked of a collector.
import { useState } from "preact/hooks";
import { useAtom } from "../../lib/atom";
import { theme, toggleTheme } from "../../lib/theme";
import { Tooltip } from "../../views/tooltip";
import type { FlameRows } from "../logic/answers";
import { Graph } from "./flame";

export interface FlameFileProps {
  title: string;
  from: string;
  to: string;
  answer: FlameRows;
}

export function FlameFile({ title, from, to, answer }: FlameFileProps) {
  const [search, setSearch] = useState("");
  const look = useAtom(theme);
  return (
    <>
      <nav class="toolbar" aria-label="tools">
        <h1><span class="brand">necroscope</span> {title}</h1>
        <span class="faint">{from} to {to}</span>
        <span class="space" />
        <button type="button" onClick={toggleTheme} aria-label="dark or light">{look === "dark" ? "☀" : "☾"}</button>
      </nav>
      <main class="fleet"><Graph rows={answer} search={search} setSearch={setSearch} /></main>
      <Tooltip />
    </>
  );
}
