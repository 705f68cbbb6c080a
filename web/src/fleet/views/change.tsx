// Did it help: how often it happened, and how often jobs succeeded, before and after a fact changed on some nodes.
import { useAtom } from "../../lib/atom";
import type { ChangeAnswer, Ends, JobRow, Rates } from "../logic/answers";
import { chanceText, percentText } from "../logic/why";
import { momentText, ratioText } from "../logic/words";
import { useApp } from "./app";
import { Asked } from "./asked";
import { WhereInput } from "./toolbar";
import { useAnswer } from "./use_answer";

export function ChangeTab() {
  const app = useApp();
  const { fact } = useAtom(app.state);
  return (
    <>
      <div class="cohorts">
        <WhereInput id="fact" label="what was changed" placeholder="unit_file:agent.service=masked" value={fact} set={(next) => app.move({ fact: next })} />
        <span class="faint">a fact as kind:name=value, or a label as image=v2*; without a value any change counts</span>
      </div>
      {fact ? <Changed fact={fact} /> : <p class="empty">Say which fact was changed to make it stop. Nodes that changed are compared with themselves before, and with the others over the same time.</p>}
    </>
  );
}

function Changed({ fact }: { fact: string }) {
  const app = useApp();
  const answer = useAnswer("change", (state, signal) => app.source.change(state, signal), fact);
  return <Asked answer={answer} asking="comparing before and after …">{(value) => <Answer answer={value} />}</Asked>;
}

function Answer({ answer }: { answer: ChangeAnswer }) {
  const most = Math.max(...[answer.changed, answer.others].map((rates) => Math.max(rates?.after.times ?? 0, rates?.expected ?? 0)), 1);
  return (
    <div class="why" id="change">
      <header>
        <p class="where">changed {momentText(answer.first_change)} to {momentText(answer.last_change)} UTC</p>
        {/* What the table says is not said twice. */}
        <h2 title={answer.summary}>{answer.summary.split(": the rate is")[0]}</h2>
      </header>
      <table class="counts">
        <thead>
          <tr><td /><th scope="col">before</th><th scope="col">after</th><th scope="col">expected</th><th scope="col">rate now</th><td /></tr>
        </thead>
        <tbody>
          <RatesRow name="nodes that changed" rates={answer.changed} most={most} />
          {answer.others && <RatesRow name="other nodes, same time" rates={answer.others} most={most} />}
        </tbody>
      </table>
      {answer.jobs.length > 0 && <Jobs jobs={answer.jobs} />}
      {answer.notes.map((note) => <p key={note} class="note">{note}</p>)}
    </div>
  );
}

function RatesRow({ name, rates, most }: { name: string; rates: Rates; most: number }) {
  const days = (value: number) => `in ${value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 })} node-days`;
  const wide = (times: number) => ({ width: `${(100 * times) / most}%` });
  return (
    <tr>
      <th scope="row">{name} <span class="of">{rates.nodes.toLocaleString("en")}</span></th>
      <td><b>{rates.before.times.toLocaleString("en")}</b> <span class="of">{days(rates.before.node_days)}</span></td>
      <td class="share">{rates.after.times.toLocaleString("en")} <span class="of">{days(rates.after.node_days)}</span></td>
      <td>{rates.expected === null ? "–" : Math.round(rates.expected).toLocaleString("en")}</td>
      <td title="95 % interval">{ratioText(rates)}</td>
      <td class="group-bar" title="full: what happened after; the box: what was expected">
        <div class="against">
          <span style={wide(rates.expected ?? 0)} />
          <i style={wide(rates.after.times)} />
        </div>
      </td>
    </tr>
  );
}

function Jobs({ jobs }: { jobs: JobRow[] }) {
  return (
    <>
      <h3>How jobs ended on the nodes that changed</h3>
      <div class="list">
        <table id="jobs">
          <thead>
            <tr><th scope="col">job</th><th scope="col">succeeded before</th><th scope="col">after</th><th scope="col" title="how often chance would raise it this much">by chance</th></tr>
          </thead>
          <tbody>
            {jobs.map((job) => (
              <tr key={`${job.kind}/${job.name}`}>
                <th scope="row"><span class="faint">{job.kind.replaceAll("_", " ")}</span> {job.name ?? "all"}</th>
                <td><Succeeded ends={job.before} /></td>
                <td><Succeeded ends={job.after} /></td>
                <td class="faint">{chanceText(job.chance)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

const Succeeded = ({ ends }: { ends: Ends }) =>
  ends.rate === null ? <>–</> : <><b>{percentText(ends.rate)}</b> <span class="of">{ends.success.toLocaleString("en")} of {ends.runs.toLocaleString("en")}</span></>;
