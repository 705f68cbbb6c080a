// Compare: the facts in which two nodes or groups of nodes differ, the most telling first.
import { useAtom } from "../../lib/atom";
import type { DiffAnswer, DiffRow, DiffValue } from "../logic/answers";
import { cohorts } from "../logic/state";
import { chanceText, percentText } from "../logic/why";
import { useApp } from "./app";
import { Asked } from "./asked";
import { Cohorts } from "./cohorts";
import { useAnswer } from "./use_answer";

const MOST_ROWS = 300;

export function CompareTab() {
  const app = useApp();
  const state = useAtom(app.state);
  const { a, b } = cohorts(state);
  const answer = useAnswer("diff", (now, signal) => app.source.diff(a, b, now, signal), `${a}\n${b}`);
  return (
    <>
      <Cohorts between="and" />
      <Asked answer={answer} asking="comparing facts …">{(value) => <Differences answer={value} />}</Asked>
    </>
  );
}

function Differences({ answer }: { answer: DiffAnswer }) {
  const more = answer.count - Math.min(answer.differences.length, MOST_ROWS);
  return (
    <>
      <p class="note">
        {answer.count.toLocaleString("en")} facts differ, the rarest difference first; {answer.same.toLocaleString("en")} are the same
        {answer.left_out.map(({ facts, reason }) => ` · ${facts.toLocaleString("en")} left out: ${reason}`)}
      </p>
      {answer.differences.length ? <Listed answer={answer} /> : <p class="empty">They do not differ in any fact that was recorded.</p>}
      {more > 0 && <p class="note">and {more.toLocaleString("en")} more</p>}
    </>
  );
}

function Listed({ answer }: { answer: DiffAnswer }) {
  return (
    <div class="list">
      <table id="differences">
        <thead>
          <tr>
            <th scope="col">fact</th>
            <SideHead side={answer.a} />
            <SideHead side={answer.b} />
            <th scope="col" title="how often chance would make such a difference">by chance</th>
          </tr>
        </thead>
        <tbody>
          {answer.differences.slice(0, MOST_ROWS).map((row) => (
            <Difference key={`${row.kind}:${row.name}`} row={row} answer={answer} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

const SideHead = ({ side }: { side: DiffAnswer["a"] }) => (
  <th scope="col">
    <span class="side" title={side.name}>{side.name}</span> <span class="of">{side.nodes.toLocaleString("en")} {side.nodes === 1 ? "node" : "nodes"}</span>
  </th>
);

function Difference({ row, answer }: { row: DiffRow; answer: DiffAnswer }) {
  return (
    <tr>
      <th scope="row"><span class="faint">{row.kind}</span> {row.name} {row.is_place && <span class="badge" title="a place is never a cause, only what it carries">place</span>}</th>
      <td class="wrapped"><Values values={row.a} isOne={answer.a.nodes === 1} /></td>
      <td class="wrapped"><Values values={row.b} isOne={answer.b.nodes === 1} /></td>
      <td class="faint">{chanceText(row.rarity)}</td>
    </tr>
  );
}

function Values({ values, isOne }: { values: DiffValue[]; isOne: boolean }) {
  return (
    <>
      {values.map(({ value, share }) => (
        <div key={value} class="value">
          {!isOne && <><i class="share-bar" style={{ "--share": share }} /> <b>{percentText(share)}</b></>} {value ?? <span class="gone">not there</span>}
        </div>
      ))}
    </>
  );
}
