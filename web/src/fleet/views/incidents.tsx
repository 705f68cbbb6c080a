// Incidents of the whole fleet: the verdict of each in a line. With evidence, a click opens it in the time machine.
import { useAtom } from "../../lib/atom";
import { kindText } from "../../logic/events";
import { confidenceText } from "../../logic/incident";
import { durationText } from "../../logic/moment";
import type { IncidentRow, IncidentsAnswer } from "../logic/answers";
import { evidenceAddress, momentText } from "../logic/words";
import { useApp } from "./app";
import { Asked } from "./asked";
import { NodeName } from "./node_name";
import { SortedTable, type ShownColumn } from "./sorted_table";
import { useAnswer } from "./use_answer";
import { keyOfIncident, VerdictOf } from "./verdict";

export function IncidentsTab() {
  const app = useApp();
  const { isAll } = useAtom(app.state);
  const answer = useAnswer("incidents", (state, signal) => app.source.incidents(state, signal), String(isAll));
  return <Asked answer={answer} asking="looking for incidents …">{(value) => <Incidents answer={value} />}</Asked>;
}

function Incidents({ answer }: { answer: IncidentsAnswer }) {
  const app = useApp();
  const { about: { what, name }, isAll, incident } = useAtom(app.state);
  const rows = what === "event" && !isAll ? answer.incidents.filter(({ events }) => events.includes(name)) : answer.incidents;
  const chosen = rows.find((row) => keyOfIncident(row) === incident);
  const older = answer.count - answer.incidents.length;
  return (
    <>
      <p class="note">
        {rows.length.toLocaleString("en")} incidents{isAll ? " of all kinds" : what === "event" ? ` with ${kindText(name)}` : ` of ${name}`}{" "}
        <button type="button" id="all-kinds" aria-pressed={isAll} onClick={() => app.move({ isAll: !isAll })}>all kinds</button>
        {older > 0 && ` · ${older.toLocaleString("en")} older ones are left out: choose less time or fewer nodes`}
      </p>
      {chosen && <VerdictOf row={chosen} />}
      {rows.length ? <SortedTable id="incidents" rows={rows} columns={COLUMNS} keyOf={keyOfIncident} order="-time" /> : <p class="empty">No incident of this kind in this time.</p>}
    </>
  );
}

const lasted = ({ from, to }: IncidentRow): number => Date.parse(to) - Date.parse(from);

const COLUMNS: ShownColumn<IncidentRow>[] = [
  { name: "time", title: "time (UTC)", value: ({ from }) => from, cell: (row) => <Opening row={row} /> },
  { name: "lasted", title: "lasted", value: lasted, isNumber: true, cell: (row) => durationText(lasted(row)) },
  { name: "node", title: "node", value: ({ node }) => node, cell: ({ node }) => <NodeName name={node} /> },
  { name: "core", title: "core", value: ({ core }) => core, isNumber: true, cell: ({ core }) => core ?? "–" },
  { name: "cause", title: "cause", value: ({ cause }) => cause, cell: (row) => <Cause row={row} /> },
  { name: "sure", title: "sure", value: ({ confidence }) => confidence, isNumber: true, cell: (row) => <span title={confidenceText(row.confidence)}>{Math.round(row.confidence * 100)} %</span> },
  { name: "culprit", title: "on the core", value: (row) => row.culprit_comm, isCut: true, cell: (row) => <Culprit row={row} /> },
  { name: "origin", title: "act on", value: (row) => row.origin_name, isCut: true, cell: (row) => (row.origin_name ? <>{row.origin_kind} <b>{row.origin_name}</b></> : "–") },
  { name: "events", title: "what broke", value: ({ events }) => events.join(), isCut: true, cell: ({ events }) => [...new Set(events)].map(kindText).join(", ") || "–" },
];

/** A click reads the verdict, a second one closes it. */
function Cause({ row }: { row: IncidentRow }) {
  const app = useApp();
  const isOpen = useAtom(app.state).incident === keyOfIncident(row);
  return (
    <button type="button" class="link" aria-expanded={isOpen} title={row.summary ?? row.title ?? ""} onClick={() => app.move({ incident: isOpen ? "" : keyOfIncident(row) })}>
      <code>{row.cause}</code>
    </button>
  );
}

function Culprit({ row }: { row: IncidentRow }) {
  return <><b>{row.culprit_comm ?? "–"}</b> <span class="faint">{row.culprit_unit ?? row.culprit_container ?? row.culprit_cgroup}</span></>;
}

/** With evidence it is a link to the time machine over it. */
function Opening({ row }: { row: IncidentRow }) {
  const address = evidenceAddress(row);
  if (address === null) return <span title="no evidence was pushed for this one">{momentText(row.from)}</span>;
  return (
    <a class="link" href={address} target="_blank" rel="noopener" title="open the evidence in the time machine">
      {momentText(row.from)} <span aria-hidden="true">↗</span>
    </a>
  );
}
