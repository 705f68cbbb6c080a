// One wait in full: where the task slept, who was in the way, and what that one did meanwhile.
import { useMemo } from "preact/hooks";
import { useLatest } from "../lib/latest";
import type { WaitRow, WaitsAnswer } from "../logic/answers";
import { heaviestPath, layout, leastShare } from "../logic/flame";
import { durationText, rangeText } from "../logic/moment";
import type { PlacedWait } from "../logic/waits";
import { showLane, useApp, type App } from "./app";
import { stepWait } from "./wait_steps";

export function WaitDetail({ answer, wait }: { answer: WaitsAnswer; wait: PlacedWait }) {
  const app = useApp();
  const { row } = wait;
  return (
    <section class="wait-detail" id="wait" aria-label="the chosen wait">
      <header>
        <h3>
          {row.comm}[{row.tid}] waited {durationText(row.waited_ms)} {row.what}
          {row.is_open && ", and still waited"}
        </h3>
        <span class="tools">
          <button type="button" onClick={() => stepWait(app, -1)} title="the next longer wait (W)">longer</button>
          <button type="button" onClick={() => stepWait(app, 1)} title="the next shorter wait (s)">shorter</button>
          <button type="button" id="close-wait" onClick={() => app.move({ ...app.state.get(), wait: null })}>close</button>
        </span>
      </header>
      <p class="faint">{[rangeText(app.clock, wait.range), `core ${row.cpu}`, `process ${row.pid}`, row.cgroup, schedulingText(row)].filter(Boolean).join(" · ")}</p>
      <div class="both-sides">
        <Sleeper answer={answer} row={row} />
        <InTheWay answer={answer} wait={wait} />
      </div>
      <Ways app={app} wait={wait} />
    </section>
  );
}

function schedulingText({ policy, priority, cores_allowed }: WaitRow): string {
  const rank = policy === "fifo" || policy === "rr" ? `${policy} ${priority}` : policy && priority ? `${policy}, nice ${priority}` : policy;
  return [rank, cores_allowed === null ? null : `may run on ${cores_allowed} ${cores_allowed === 1 ? "core" : "cores"}`].filter(Boolean).join(", ");
}

function Sleeper({ answer, row }: { answer: WaitsAnswer; row: WaitRow }) {
  const user = row.user_stack === undefined || row.user_stack === null ? null : answer.stacks[row.user_stack]!;
  if (row.kind === "runnable") {
    return (
      <div>
        <h4>Who waited</h4>
        <p>It was ready to run and core {row.cpu} was not free, so it slept nowhere.</p>
        {user && <Stack name="in its program" functions={user} />}
      </div>
    );
  }
  return (
    <div>
      <h4>Where it slept, innermost first</h4>
      {row.stack === null ? <p class="faint">its stack was not recorded</p> : <Stack name="in the kernel" functions={answer.stacks[row.stack]!} />}
      {user && <Stack name="in its program" functions={user} />}
    </div>
  );
}

function InTheWay({ answer, wait }: { answer: WaitsAnswer; wait: PlacedWait }) {
  const { row } = wait;
  if (row.by_tid === null) return <div><h4>Who was in the way</h4><p class="faint">{unknownText(row)}</p></div>;
  const ran = row.by_ran_ms === null ? "" : `, for ${durationText(row.by_ran_ms)} without a break`;
  const did = row.kind === "runnable" ? `had core ${row.cpu}${ran}` : row.is_given_back ? "gave the lock back: it had it until then" : "woke it up";
  return (
    <div>
      <h4>
        {row.by_comm}[{row.by_tid}] {did}
      </h4>
      <p class="faint">{[`process ${row.by_pid}`, row.by_cgroup, row.by_policy].filter(Boolean).join(" · ")}</p>
      {row.by_stack !== null && <Stack name="from" functions={answer.stacks[row.by_stack]!} />}
      <Meanwhile wait={wait} />
    </div>
  );
}

function unknownText(row: WaitRow): string {
  if (row.kind === "runnable") return "No task kept the core for long: many took turns, or the CPU quota of its cgroup was used up. The flame graph below is of who ran on that core meanwhile.";
  return row.is_open ? "It was still asleep when this was seen, so nothing had woken it." : "Who woke it was not recorded.";
}

/** What samples say of the one in the way while the other waited. */
function Meanwhile({ wait }: { wait: PlacedWait }) {
  const app = useApp();
  const { row, range } = wait;
  const question = { window: range, baseline: null, cpu: null, pid: row.by_pid, comm: "", cgroup: "", group: "", isTurned: false, of: "samples", least: leastShare(1, false) } as const;
  const answer = useLatest(`${range.join()}/${row.by_pid}`, (signal) => app.source.flame(question, signal));
  const flame = useMemo(() => (answer.value ? layout(answer.value) : null), [answer.value]);
  if (!flame) return null;
  if (!flame.samples) return <p class="faint">It was not on a core in any sample of this time: {row.kind === "runnable" ? "the wait was short" : "it slept, too, or ran for moments only"}.</p>;
  return <Stack name={`ran meanwhile (${flame.samples.toLocaleString("en")} samples), mostly in`} functions={heaviestPath(flame).reverse()} />;
}

const SHOWN = 12;

function Stack({ name, functions }: { name: string; functions: readonly string[] }) {
  const more = functions.length - SHOWN;
  return (
    <>
      <p class="stack-name">{name}</p>
      <ol class="stack mono">
        {functions.slice(0, SHOWN).map((text, place) => (
          <li key={place}>{text}</li>
        ))}
        {more > 0 && <li class="faint">and {more} more</li>}
      </ol>
    </>
  );
}

/** Where to look next. */
function Ways({ app, wait: { row } }: { app: App; wait: PlacedWait }) {
  const go = (lane: string, change: object) => () => {
    app.move({ ...app.state.get(), ...change });
    showLane(app, lane);
  };
  return (
    <p class="ways">
      <button type="button" onClick={go("cores", { cpu: row.cpu })}>core {row.cpu} at that time</button>
      <button type="button" onClick={go("flame", { cpu: row.cpu, of: "samples", pid: null, comm: "" })}>who ran on core {row.cpu}</button>
      {row.by_pid !== null && row.by_pid > 0 && <button type="button" onClick={go("flame", { cpu: null, of: "samples", pid: row.by_pid, comm: "" })}>what {row.by_comm} did</button>}
      <button type="button" onClick={go("flame", { cpu: null, of: "waits", pid: row.pid, comm: "" })}>all waits of process {row.pid}</button>
    </p>
  );
}
