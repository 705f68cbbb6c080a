// Why: which difference between the nodes goes with the failures, how sure that is, who decides, and what only seems to matter.
import type { Leader, WhyAnswer } from "../logic/answers";
import { BADGES, chanceText, moreText, partingText, relationText, titleOf } from "../logic/why";
import { useApp } from "./app";
import { Asked } from "./asked";
import { Bars, Squares, Strata } from "./counts";
import { useAnswer } from "./use_answer";

const MOST_NAMES = 6;
const MOST_OTHERS = 12;

export function WhyTab() {
  const app = useApp();
  const answer = useAnswer("why", (state, signal) => app.source.why(state, signal));
  return <Asked answer={answer} asking="comparing the nodes …">{(value) => <Answer answer={value} />}</Asked>;
}

function Answer({ answer }: { answer: WhyAnswer }) {
  const [first, ...others] = answer.leaders;
  return (
    <div class="why" id="why" data-outcome={answer.outcome}>
      <Headline answer={answer} first={first} />
      {first && <First leader={first} isNamed={answer.outcome === "separated"} />}
      {answer.experiments.length > 0 && <Experiments texts={answer.experiments} />}
      {!first && answer.affected > 0 && <Differing />}
      {first && others.length > 0 && <Others leaders={others} first={first} />}
      <LeftOut answer={answer} />
    </div>
  );
}

/** Where nothing could be weighed, what differs can still be read. */
function Differing() {
  const app = useApp();
  return (
    <p>
      <button type="button" onClick={() => app.move({ tab: "compare", a: "", b: "" })}>in which facts do they differ?</button>
    </p>
  );
}

function Headline({ answer, first }: { answer: WhyAnswer; first: Leader | undefined }) {
  const isNamed = answer.outcome === "separated";
  return (
    <header>
      <p class="where">
        <span class={`outcome ${isNamed ? "named" : ""}`}>{answer.outcome}</span> {answer.about.name}: {answer.affected.toLocaleString("en")} of{" "}
        {answer.nodes.toLocaleString("en")} nodes, {answer.times.toLocaleString("en")} times · {answer.differences.toLocaleString("en")} differences between the nodes were weighed
      </p>
      <h2>{isNamed && first ? <NamedCause first={first} about={answer.about.name} /> : answer.summary.replace(`${answer.outcome}: `, "")}</h2>
      {answer.mechanism && (
        <p>
          {answer.decided_by === "mechanism" ? "Decided by mechanism, not by counts: " : "The mechanism agrees: "}
          {answer.mechanism.text}.
        </p>
      )}
      {answer.dose_summary && <p class="dose">{answer.dose_summary}.</p>}
    </header>
  );
}

function NamedCause({ first, about }: { first: Leader; about: string }) {
  return <><mark>{first.name}</mark> goes with {about}: {moreText(first.table)}</>;
}

function First({ leader, isNamed }: { leader: Leader; isNamed: boolean }) {
  const app = useApp();
  const [fact] = leader.facts;
  return (
    <section class="first" aria-label="the first difference">
      {!isNamed && <h3>{leader.name}</h3>}
      <AlsoCalled leader={leader} shown={leader.name} />
      <div class="pictures">
        <div class="sure">
          <Bars table={leader.table} />
          <p class="faint" title={leader.words}>If it did not matter, chance would give counts like these with a probability of {chanceText(leader.chance)}.</p>
          {fact && (
            <button type="button" onClick={() => app.move({ tab: "change", fact: fact.kind === "label" ? fact.name : `${fact.kind}:${fact.name}` })} title="nodes on which this fact changed: before and after">
              did changing it help?
            </button>
          )}
        </div>
        <Squares table={leader.table} />
      </div>
    </section>
  );
}

/** Names that hold on the very same nodes: together they are one difference. */
function AlsoCalled({ leader, shown }: { leader: Leader; shown: string }) {
  const names = [...leader.facts, ...leader.places].map(({ text }) => text).filter((text) => text !== shown);
  if (!names.length) return null;
  return (
    <details class="same" open={names.length <= MOST_NAMES}>
      <summary>on the very same nodes also ({names.length})</summary>
      <ul>
        {names.map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </details>
  );
}

function Experiments({ texts }: { texts: string[] }) {
  return (
    <section class="experiments" aria-label="the experiment that would decide">
      <h3>The experiment that would tell</h3>
      <ol>
        {texts.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ol>
    </section>
  );
}

function Others({ leaders, first }: { leaders: Leader[]; first: Leader }) {
  const more = leaders.length - MOST_OTHERS;
  // Where a place is only a proxy, that is what people ask next: it opens by itself.
  const opened = leaders.findIndex(({ relation, places }) => relation === "inseparable" || (relation === "proxy" && places.length > 0));
  return (
    <section class="others-why" aria-label="other differences">
      <h3>What else goes with it, and why it comes after</h3>
      {leaders.slice(0, MOST_OTHERS).map((leader, place) => (
        <Other key={leader.name} leader={leader} first={first} place={place + 2} isOpen={place === opened} />
      ))}
      {more > 0 && <p class="faint">and {more} more</p>}
    </section>
  );
}

function Other({ leader, first, place, isOpen }: { leader: Leader; first: Leader; place: number; isOpen: boolean }) {
  return (
    <details class="other" open={isOpen} data-relation={leader.relation}>
      <summary>
        <span class="rank">{place}</span>
        <span class="name">{titleOf(leader)}</span>
        <span class={`badge ${leader.relation === "inseparable" ? "warn" : ""}`}>{BADGES[leader.relation] ?? leader.relation}</span>
        {leader.places.length > 0 && <span class="badge">place</span>}
      </summary>
      <p>{relationText(leader)}.{leader.relation === "proxy" && ` ${partingText(leader)}`}</p>
      <AlsoCalled leader={leader} shown={leader.places[0]?.text ?? leader.name} />
      <div class="pictures">
        <Bars table={leader.table} isSmall />
        {leader.relation !== "same subject" && <Strata leader={leader} first={first} />}
      </div>
    </details>
  );
}

function LeftOut({ answer }: { answer: WhyAnswer }) {
  const texts = [...answer.notes, ...answer.left_out.map(({ facts, reason }) => `${facts.toLocaleString("en")} facts were not asked: ${reason}`)];
  if (!texts.length) return null;
  return (
    <details>
      <summary>What was left out</summary>
      <ul>
        {texts.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </details>
  );
}
