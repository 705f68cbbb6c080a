// Jobs over nodes: how each ended, whose fault it was, and the story of one from its last line to the core.
import { useAtom } from "../../lib/atom";
import { durationText } from "../../logic/moment";
import type { EndedJob, JobRate, JobStory, JobsAnswer } from "../logic/answers";
import { blameText, jobKey, ofJobKey } from "../logic/jobs";
import { percentText } from "../logic/why";
import { momentText } from "../logic/words";
import { useApp } from "./app";
import { Asked } from "./asked";
import { NodeName } from "./node_name";
import { SortedTable, type ShownColumn } from "./sorted_table";
import { useAnswer } from "./use_answer";

export function JobsTab() {
  const app = useApp();
  const { job, by: label } = useAtom(app.state);
  const choices = useAtom(app.choices);
  const by = choices?.labels.some(({ name }) => name === label) ? label : "kind";
  const answer = useAnswer("jobs", (state, signal) => app.source.jobs(state, by, signal), by);
  return (
    <>
      {job && <Story job={job} />}
      <Asked answer={answer} asking="looking for jobs …">{(value) => <Jobs answer={value} />}</Asked>
    </>
  );
}

function Jobs({ answer }: { answer: JobsAnswer }) {
  const older = answer.count - answer.jobs.length;
  if (!answer.count) return <p class="empty">No job over nodes in this time. Recorders find them by themselves and push them.</p>;
  return (
    <>
      <p class="note">
        {answer.count.toLocaleString("en")} jobs: {Object.entries(answer.outcomes).map(([name, count]) => `${count.toLocaleString("en")} ${name}`).join(", ")}
        {answer.blames.machine !== undefined && <> · <b>{answer.blames.machine.toLocaleString("en")} by the machine</b></>}
        {older > 0 && ` · ${older.toLocaleString("en")} older ones are left out: choose less time or fewer nodes`}
      </p>
      {answer.rates.length > 0 && <SuccessRates rates={answer.rates} by={answer.by} />}
      <SortedTable id="job-list" rows={answer.jobs} columns={COLUMNS} keyOf={jobKey} order="-ended" />
    </>
  );
}

function SuccessRates({ rates, by }: { rates: JobRate[]; by: string }) {
  return (
    <table class="counts" id="success">
      <thead>
        <tr><th scope="col">{by}</th><th scope="col">succeeded</th><th scope="col">95 %</th><th scope="col">by the machine</th></tr>
      </thead>
      <tbody>
        {rates.slice(0, MOST_RATES).map((rate) => (
          <tr key={rate.value ?? ""}>
            <th scope="row">{rate.value ?? "–"}</th>
            <td><b>{percentText(rate.rate)}</b> <span class="of">{rate.success.toLocaleString("en")} of {rate.runs.toLocaleString("en")}</span></td>
            <td>{percentText(rate.low)} to {percentText(rate.high)}</td>
            <td>{rate.by_machine.toLocaleString("en")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const MOST_RATES = 12;
const ran = ({ from, to }: EndedJob): number => Date.parse(to) - Date.parse(from);

const COLUMNS: ShownColumn<EndedJob>[] = [
  { name: "ended", title: "last seen (UTC)", value: ({ to }) => to, cell: ({ to }) => momentText(to) },
  { name: "job", title: "job", value: ({ job }) => job, isCut: true, cell: (row) => <Opening row={row} /> },
  { name: "kind", title: "kind", value: ({ kind }) => kind, cell: ({ kind }) => kind },
  { name: "outcome", title: "outcome", value: ({ outcome }) => outcome, cell: ({ outcome }) => outcome },
  { name: "blame", title: "blame", value: ({ blame }) => blame, cell: ({ blame }) => blameText(blame) },
  { name: "node", title: "leads to", value: ({ node }) => node, cell: ({ node, blame }) => (node && blame === "machine" ? <NodeName name={node} isAffected /> : "–") },
  { name: "cause", title: "cause", value: ({ cause }) => cause, cell: ({ cause }) => (cause ? <code>{cause}</code> : "–") },
  { name: "nodes", title: "nodes", value: ({ nodes }) => nodes.length, isNumber: true, cell: ({ nodes }) => <span title={nodes.join(", ")}>{nodes.length}</span> },
  { name: "ran", title: "ran", value: ran, isNumber: true, cell: (row) => durationText(ran(row)) },
];

/** A click tells its story, a second one closes it. */
function Opening({ row }: { row: EndedJob }) {
  const app = useApp();
  const isOpen = useAtom(app.state).job === jobKey(row);
  return (
    <button type="button" class="link" aria-expanded={isOpen} onClick={() => app.move({ job: isOpen ? "" : jobKey(row) })}>
      {row.job}
    </button>
  );
}

function Story({ job }: { job: string }) {
  const app = useApp();
  const answer = useAnswer("job", (state, signal) => app.source.job(ofJobKey(job), state, signal), job);
  return <Asked answer={answer} asking="following the chain …">{(value) => <JobChain story={value} />}</Asked>;
}

function JobChain({ story }: { story: JobStory }) {
  const { cost } = story;
  return (
    <article class="why" id="story">
      <header>
        <p class="where">{story.job}, {story.outcome}, {story.members.length} members on {story.nodes.length} nodes</p>
        <h2>{story.blame_words}</h2>
        <p>{story.answer}</p>
        {!story.is_order_known && <p class="note">Which was first is uncertain: the times are closer than clocks and ticks can separate.</p>}
      </header>
      <div class="list">
        <table id="chain">
          <thead><tr><th scope="col">time (UTC)</th><th scope="col">±</th><th scope="col">node</th><th scope="col">core</th><th scope="col">what</th></tr></thead>
          <tbody>
            {story.chain.map((step, place) => (
              <tr key={place}>
                <td>{step.time.slice(11, 23)}</td>
                <td class="faint">{step.error_ms.toLocaleString("en")} ms</td>
                <td>{step.node}</td>
                <td>{step.core ?? "–"}</td>
                <td>{step.text}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="note">
        It cost {cost.node_hours} node-hours{cost.gpu_hours !== null && `, ${cost.gpu_hours} GPU-hours`}
        {cost.jobs_this_week !== null && `; the same cause hit ${cost.jobs_this_week} other jobs in the week before`}
        {cost.alike.length > 0 && `: ${cost.alike.map(({ job, node }) => `${job} on ${node}`).join(", ")}`}.
        {story.origin && <> Act on: <b>{story.origin}</b>.</>}
      </p>
      {story.notes.map((note) => <p key={note} class="note">{note}</p>)}
    </article>
  );
}
