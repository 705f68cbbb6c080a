// Nodes: who they are, when they were last heard of, and how they fare. A click on a label chooses nodes that have it.
import { useAtom } from "../../lib/atom";
import { useLatest } from "../../lib/latest";
import { kindText } from "../../logic/events";
import type { NodeRow, NodesAnswer, WorstCore, WorstCores } from "../logic/answers";
import { equals, toggledWhere } from "../logic/state";
import { clockText, lengthText, momentText, shareText } from "../logic/words";
import { useApp, type App } from "./app";
import { Asked } from "./asked";
import { nodeExpression, NodeName } from "./node_name";
import { SortedTable, type ShownColumn } from "./sorted_table";
import { useAnswer } from "./use_answer";

export function NodesTab() {
  const app = useApp();
  const { since, until } = useAtom(app.state);
  const answer = useAnswer("nodes", (state, signal) => app.source.nodes(state, signal));
  const worst = useLatest(`${since}\n${until}`, (signal) => app.source.worstCores({ since, until }, signal)).value;
  return (
    <Asked answer={answer} asking="looking for nodes …">
      {(value) => (value.nodes.length ? <Nodes answer={value} worst={worst} /> : <p class="empty">No node was heard of in this time.</p>)}
    </Asked>
  );
}

function Nodes({ answer, worst }: { answer: NodesAnswer; worst: WorstCores | null }) {
  const app = useApp();
  const cores = new Map((worst?.cores ?? []).map((core) => [keyOf(core), core]));
  return (
    <>
      <p class="note">
        {answer.count.toLocaleString("en")} nodes{answer.silent > 0 && `, ${answer.silent.toLocaleString("en")} of them silent at the end of the time`}
        {answer.clocks_off > 0 && `, ${answer.clocks_off.toLocaleString("en")} with a clock that is off: what happened there is counted at another time`}
        {worst && worst.cores.length > 0 && ` · worst core: the worst second of each node since ${momentText(worst.from)}`}
      </p>
      <SortedTable id="nodes" rows={answer.nodes} columns={columns(app, answer, cores)} keyOf={keyOf} order="-incidents" />
    </>
  );
}

const keyOf = ({ cluster, node }: { cluster: string; node: string }): string => `${cluster}/${node}`;

function columns(app: App, answer: NodesAnswer, cores: ReadonlyMap<string, WorstCore>): ShownColumn<NodeRow>[] {
  const severalClusters = new Set(answer.nodes.map(({ cluster }) => cluster)).size > 1;
  const { what, name } = app.state.get().about;
  const now_ms = Date.parse(answer.to);
  const counted = (row: NodeRow): number => (what === "event" ? (row.events[name] ?? 0) : row.incidents);
  const events: ShownColumn<NodeRow> = { name: "events", title: kindText(name), value: counted, isNumber: true, cell: (row) => counted(row).toLocaleString("en") };
  return [
    { name: "node", title: "node", value: keyOf, cell: (row) => <NodeName name={severalClusters ? keyOf(row) : row.node} isAffected={counted(row) > 0} /> },
    ...(what === "event" ? [events] : []),
    { name: "incidents", title: "incidents", value: ({ incidents }) => incidents, isNumber: true, cell: (row) => <Count row={row} /> },
    { name: "cause", title: "newest cause", value: ({ last_cause }) => last_cause, cell: ({ last_cause }) => (last_cause ? <code>{last_cause}</code> : "–") },
    { name: "worst", title: "worst core", value: (row) => cores.get(keyOf(row))?.share ?? null, isNumber: true, cell: (row) => shareText(cores.get(keyOf(row))) },
    { name: "seen", title: "last seen", value: ({ last_seen }) => last_seen, isNumber: true, cell: (row) => <Seen row={row} now_ms={now_ms} /> },
    { name: "labels", title: "labels", value: ({ labels }) => Object.entries(labels).join(), cell: (row) => <Labels row={row} /> },
  ];
}

/** A click lists them. */
function Count({ row }: { row: NodeRow }) {
  const app = useApp();
  if (!row.incidents) return <>0</>;
  return (
    <button type="button" class="link" title={`the incidents of ${row.node}`} onClick={() => app.move({ tab: "incidents", where: nodeExpression(keyOf(row)), isAll: true })}>
      {row.incidents.toLocaleString("en")}
    </button>
  );
}

function Seen({ row, now_ms }: { row: NodeRow; now_ms: number }) {
  if (row.last_seen === null) return <span class="gone" title="not heard of on the last day of the time">silent</span>;
  const text = lengthText(Math.max(now_ms - Date.parse(row.last_seen), 0));
  return (
    <>
      <span class={row.is_silent ? "gone" : ""} title={row.last_seen}>{row.is_silent ? `silent for ${text}` : `${text} ago`}</span>
      {row.is_clock_off && <span class="gone"> · {clockText(row.clock_offset_ns!)}</span>}
    </>
  );
}

function Labels({ row }: { row: NodeRow }) {
  const app = useApp();
  return (
    <>
      {Object.entries(row.labels).sort().map(([name, value]) => (
        <button key={name} type="button" class="label" title={`only nodes with ${name}=${value}`} onClick={() => app.move({ where: toggledWhere(app.state.get().where, equals(name, value)) })}>
          <span class="faint">{name}</span> {value}
        </button>
      ))}
    </>
  );
}
