// The verdict of one incident as the node pushed it: what happened, why we think so, what to do. Also where there is no evidence to open.
import { useLatest } from "../../lib/latest";
import type { Verdict } from "../../logic/answers";
import { confidenceText } from "../../logic/incident";
import type { IncidentRow } from "../logic/answers";
import { evidenceAddress, momentText } from "../logic/words";
import { useApp } from "./app";
import { Asked } from "./asked";

export const keyOfIncident = ({ cluster, node, id }: IncidentRow): string => `${cluster}/${node}/${id}`;

export function VerdictOf({ row }: { row: IncidentRow }) {
  const app = useApp();
  const answer = useLatest(keyOfIncident(row), (signal) => app.source.incident(row, signal));
  const address = evidenceAddress(row);
  return (
    <section id="verdict-of" class="verdict-of" aria-label="verdict">
      <p class="where">
        {momentText(row.from)} UTC · {row.node}{row.core === null ? "" : ` · core ${row.core}`}
        {address && <> · <a class="link" href={address} target="_blank" rel="noopener">see the evidence in the time machine</a></>}
        <button type="button" class="close" onClick={() => app.move({ incident: "" })}>close</button>
      </p>
      <h2>{row.summary}</h2>
      <p class="cause"><code>{row.cause}</code> {confidenceText(row.confidence)}</p>
      <Asked answer={answer} asking="reading the report …">{({ report }) => (report.verdict ? <Lists verdict={report.verdict} /> : null)}</Asked>
    </section>
  );
}

function Lists({ verdict }: { verdict: Verdict }) {
  return (
    <div class="verdict-lists">
      <Listed title="Why" texts={verdict.evidence.map(({ text }) => text)} />
      <Listed title="What speaks against it" texts={verdict.against.map(({ text }) => text)} />
      <Listed title="What to do" texts={verdict.fix} />
      <Listed title="How to see that it helped" texts={verdict.verify} />
      <Listed title="What will not help" texts={verdict.will_not_help.map(({ what, why }) => `${what}: ${why}`)} />
    </div>
  );
}

function Listed({ title, texts }: { title: string; texts: string[] }) {
  if (!texts.length) return null;
  return (
    <div>
      <h3>{title}</h3>
      <ul>
        {texts.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </div>
  );
}
