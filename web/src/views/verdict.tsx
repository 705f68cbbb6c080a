// The verdict, first on the page: what happened, who did it, why we think so, what to do. Each piece of evidence leads to its place.
import type { ComponentChildren } from "preact";
import { useAtom } from "../lib/atom";
import type { Evidence, Incident, ReportAnswer, Verdict } from "../logic/answers";
import { kindText } from "../logic/events";
import { busiest, tellingMode } from "../logic/core_map";
import { commandApart, confidenceText, laneOf, ranked, withEvidence, withIncident, withMoment, type Lane } from "../logic/incident";
import { durationText, rangeText, timeText } from "../logic/moment";
import { MODE_TEXT } from "../logic/state";
import { byLength } from "../logic/waits";
import { showLane, useApp, type App } from "./app";
import { goToWait } from "./wait_steps";

const LANE_TEXT: Record<Lane, string> = { events: "event", cores: "core map", waits: "waits", cgroups: "cgroups", counters: "counters", heat: "heat map", flame: "flame graph", tasks: "tasks" };
const MOST_LISTED = 200;

export function chosenIncident(app: App, id: string | null): Incident | null {
  const incidents = ranked(app.report.get()?.incidents ?? []);
  return incidents.find((incident) => incident.id === id) ?? incidents[0] ?? null;
}

export function VerdictPanel() {
  const app = useApp();
  const report = useAtom(app.report);
  const error = useAtom(app.reportError);
  const state = useAtom(app.state);
  if (error) return <Panel><h2>No verdict</h2><p>{error}</p></Panel>;
  if (!report) return <Panel><h2>Looking for incidents …</h2><p class="faint">The lanes can be used meanwhile.</p><div class="bar" role="status" /></Panel>;
  const incident = chosenIncident(app, state.incident);
  if (!incident && !report.is_complete) return <Panel><h2>Looking for incidents …</h2><Progress share={report.progress} /></Panel>;
  if (!incident && report.failed.length) return <Panel><h2>No verdict</h2><Failed failed={report.failed} isOpen /><Notes notes={report.notes} /></Panel>;
  if (!incident) return <Healthy notes={report.notes} />;
  return (
    <Panel>
      {!report.is_complete && <Progress share={report.progress} />}
      <Head incident={incident} count={report.incidents.length} />
      <Answer verdict={incident.verdict} />
      <EvidenceList incident={incident} />
      <Advice verdict={incident.verdict} />
      <Alternatives incident={incident} />
      <Others chosen={incident.id} />
      <Failed failed={report.failed} />
      <Notes notes={report.notes} />
    </Panel>
  );
}

const Panel = ({ children }: { children: ComponentChildren }) => (
  <aside id="verdict" aria-label="verdict" tabIndex={-1}>
    {children}
  </aside>
);

const Progress = ({ share }: { share: number }) => (
  <p class="where" role="status">
    {Math.round(share * 100)} % of the recording was gone through, newest first
    <progress max={1} value={share} />
  </p>
);

function Healthy({ notes }: { notes: string[] }) {
  const { live } = useAtom(useApp().recording);
  return (
    <Panel>
      <h2>Nothing was found{live ? " so far" : ""}</h2>
      <p>No core was starved and no task was kept waiting for long, as far as this recording shows.</p>
      <StandsOut />
      <p class="faint">Drag over any lane to look at a moment; press ? for the keys.</p>
      <Notes notes={notes} />
    </Panel>
  );
}

/** What to look at although nothing was found: the busiest stretch, and the longest wait. */
function StandsOut() {
  const app = useApp();
  const map = useAtom(app.coreMap);
  const waits = useAtom(app.waits);
  if (map && map.columns === 0) return <p>This recording holds nothing yet. `necroscope record --dir D` records into it; the page follows.</p>;
  const mode = map && tellingMode(map);
  const busy = map && mode && busiest(map, mode);
  const longest = waits && byLength(waits, app.clock)[0];
  return (
    <ul>
      {busy && busy.share >= 0.05 && (
        <li>
          The busiest stretch:{" "}
          <button type="button" class="link" id="busiest" onClick={() => app.move(withMoment(app.state.get(), busy.moment, busy.cpu, mode, app.span()))}>
            core {busy.cpu} at {timeText(app.clock.date(busy.moment), 1000)}, {Math.round(busy.share * 100)} % {MODE_TEXT[mode]}
          </button>
        </li>
      )}
      {longest && (
        <li>
          The longest wait:{" "}
          <button type="button" class="link" onClick={() => goToWait(app, longest)}>
            {longest.row.comm} waited {durationText(longest.row.waited_ms)} {longest.row.what}
          </button>
        </li>
      )}
    </ul>
  );
}

function Head({ incident, count }: { incident: Incident; count: number }) {
  const app = useApp();
  const incidents = ranked(app.report.get()!.incidents);
  const place = incidents.findIndex((each) => each.id === incident.id) + 1;
  const [from, to] = [app.clock.ofIso(incident.from), app.clock.ofIso(incident.to)];
  return (
    <>
      <p class="where">
        {count > 1 ? `Incident ${place} of ${count} · ` : "Incident · "}
        <button type="button" class="link" onClick={() => goToIncident(app, incident)} title="show the whole incident">
          {rangeText(app.clock, [from, to])}
        </button>{" "}
        ({durationText(to - from)}){incident.core === null ? "" : ` · core ${incident.core}`}
      </p>
      <Happened incident={incident} />
    </>
  );
}

/** The events in words, counted: what the user noticed. */
function Happened({ incident }: { incident: Incident }) {
  const counts = new Map<string, number>();
  for (const { kind, device } of incident.events) {
    const text = kindText(kind) + (device ? ` of ${device}` : "");
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  if (!counts.size) return null;
  return <p class="happened">{[...counts].map(([text, count]) => (count > 1 ? `${count} × ${text}` : text)).join(", ")}</p>;
}

function Answer({ verdict }: { verdict: Verdict }) {
  const { culprit, origin } = verdict;
  return (
    <>
      <h2 class="summary">{verdict.summary}</h2>
      {verdict.title && <p class="cause-title">{sentence(verdict.title)}</p>}
      <p class="cause">
        <code>{verdict.cause}</code>
        <span>
          <meter min={0} max={1} value={verdict.confidence} aria-label="confidence" /> {confidenceText(verdict.confidence)}
        </span>
      </p>
      <dl>
        {culprit?.comm && (
          <>
            <dt>who</dt>
            <dd>
              <b>{culprit.comm}</b> {culprit.pid !== null && <span class="faint">pid {culprit.pid}</span>}
              {(culprit.unit ?? culprit.container ?? culprit.cgroup) && <div class="faint wrap">{culprit.unit ?? culprit.container ?? culprit.cgroup}</div>}
            </dd>
          </>
        )}
        {culprit && culprit.path.length > 0 && (
          <>
            <dt>in</dt>
            <dd class="mono wrap" title={culprit.path.join("\n")}>{culprit.path.slice(-4).join(" > ")}</dd>
          </>
        )}
        {origin && (
          <>
            <dt>act on</dt>
            <dd>
              {origin.kind} <b>{origin.name}</b>
            </dd>
          </>
        )}
      </dl>
    </>
  );
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function EvidenceList({ incident }: { incident: Incident }) {
  const { evidence, against } = incident.verdict;
  return (
    <>
      <h3>Why: click to see it</h3>
      <ol class="evidence">
        {evidence.map((item, number) => (
          <EvidenceItem key={number} item={item} incident={incident} />
        ))}
      </ol>
      {against.length > 0 && <h3>What speaks against it</h3>}
      <ul class="evidence against">
        {against.map((item, number) => (
          <EvidenceItem key={number} item={item} incident={incident} />
        ))}
      </ul>
    </>
  );
}

function EvidenceItem({ item, incident }: { item: Evidence; incident: Incident }) {
  const app = useApp();
  const lane = laneOf(item);
  const go = () => {
    app.follows.set(false);
    app.move(withEvidence(app.state.get(), item, incident, app.clock, app.span()));
    showLane(app, lane);
  };
  return (
    <li>
      <button type="button" class="link" data-lane={lane} onClick={go}>
        {item.text}
      </button>
      <span class="place">
        {timeText(app.clock.date(app.clock.ofIso(item.from)), 1000)} · {LANE_TEXT[lane]}
      </span>
    </li>
  );
}

function Advice({ verdict }: { verdict: Verdict }) {
  return (
    <>
      <Listed title="What to do" items={verdict.fix} isOpen />
      <Listed title="How to see that it helped" items={verdict.verify} />
      <Listed title="What will not help" items={verdict.will_not_help.map(({ what, why }) => `${what}: ${why}`)} />
    </>
  );
}

function Listed({ title, items, isOpen = false }: { title: string; items: string[]; isOpen?: boolean }) {
  if (!items.length) return null;
  return (
    <details open={isOpen}>
      <summary>{title}</summary>
      <ul>
        {items.map(commandApart).map(([text, command], number) => (
          <li key={number}>
            {text} {command && <code class="command">{command}</code>}
          </li>
        ))}
      </ul>
    </details>
  );
}

function Alternatives({ incident }: { incident: Incident }) {
  const items = incident.alternatives.map(({ cause, confidence, why_not }) => `${cause} (${Math.round(confidence * 100)} %): ${why_not}`);
  return <Listed title="What else it could be" items={items} />;
}

function Others({ chosen }: { chosen: string }) {
  const app = useApp();
  const others = ranked(app.report.get()!.incidents).filter((incident) => incident.id !== chosen);
  if (!others.length) return null;
  return (
    <details open={others.length <= 6}>
      <summary>{others.length} other incidents</summary>
      <ol class="others">
        {others.slice(0, MOST_LISTED).map((incident) => (
          <li key={incident.id}>
            <button type="button" class="link" onClick={() => goToIncident(app, incident)}>
              {timeText(app.clock.date(app.clock.ofIso(incident.from)), 1000)} {incident.verdict.cause}
              {incident.core === null ? "" : `, core ${incident.core}`}
            </button>
          </li>
        ))}
      </ol>
      {others.length > MOST_LISTED && <p class="faint">and {others.length - MOST_LISTED} more</p>}
    </details>
  );
}

export function goToIncident(app: App, incident: Incident): void {
  app.follows.set(false);
  app.move(withIncident(app.state.get(), incident, app.clock, app.span()));
}

function Failed({ failed, isOpen = false }: { failed: ReportAnswer["failed"]; isOpen?: boolean }) {
  const { clock } = useApp();
  const failures = failed.map(({ from_ns, to_ns, error }) => `${rangeText(clock, [clock.ofDigits(from_ns), clock.ofDigits(to_ns)])}: ${error}`);
  return <Listed title="What could not be looked at" items={failures} isOpen={isOpen} />;
}

const Notes = ({ notes }: { notes: string[] }) => <Listed title="What could not be seen" items={notes} />;
