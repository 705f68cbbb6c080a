// Who was on a hot core when it was found held: the table of tasks.
import { useAtom } from "../lib/atom";
import { useLatest } from "../lib/latest";
import type { TaskRow } from "../logic/answers";
import { timeText } from "../logic/moment";
import { useApp, type App } from "./app";
import { Lane } from "./lane";

const MOST = 60;

export function TasksLane() {
  const app = useApp();
  const state = useAtom(app.state);
  const span = state.window;
  const key = span && `${span.join()}/${state.cpu}`;
  const answer = useLatest(key, (signal) => app.source.tasks(span!, state.cpu, signal));
  const rows = [...(answer.value?.rows ?? [])].sort((a, b) => b.samples - a.samples).slice(0, MOST);
  const who = state.cpu === null ? "Tasks on hot cores" : `Tasks on core ${state.cpu}`;
  const note = ["captured when a core was found held", ...(answer.value?.left_out ?? [])].join(" · ");
  return (
    <Lane id="tasks" title={who} note={answer.error?.message ?? note} isAsking={answer.isAsking}>
      {rows.length ? <Tasks rows={rows} /> : <p class="empty">{span ? "No core was found held in this window, so no tasks were captured." : "Choose a window."}</p>}
    </Lane>
  );
}

function Tasks({ rows }: { rows: TaskRow[] }) {
  const app = useApp();
  return (
    <div class="scrolled">
      <table>
        <thead>
          <tr>
            {["time", "core", "process", "samples", "in", "policy", "cgroup", "innermost first"].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, number) => (
            <Task key={number} row={row} app={app} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Task({ row, app }: { row: TaskRow; app: App }) {
  const only = (process: { pid: number | null; comm: string }) => () => app.move({ ...app.state.get(), ...process });
  const doing = row.syscall ? `${row.syscall}${row.file ? ` of ${row.file}` : ""}` : "";
  return (
    <tr>
      <td>{timeText(app.clock.date(app.clock.ofDigits(row.time)), 1000)}</td>
      <td>{row.cpu}</td>
      <td>
        <button type="button" class="link" onClick={only({ pid: null, comm: row.comm })} title="only what has this name in the flame graph">
          {row.comm}
        </button>{" "}
        <button type="button" class="link faint" onClick={only({ pid: row.pid, comm: "" })} title="only this process in the flame graph">
          {row.pid}
        </button>
      </td>
      <td class="number">{row.samples}</td>
      <td>{doing}</td>
      <td>{[row.policy, row.priority].filter((part) => part !== null).join(" ")}</td>
      <td class="cut" title={row.cgroup ?? ""}>
        {row.cgroup}
      </td>
      <td class="cut mono" title={(row.python_stack ?? row.stack ?? "").replaceAll(";", "\n")}>
        {(row.python_stack ?? row.stack ?? "").split(";").slice(0, 6).join(" < ")}
      </td>
    </tr>
  );
}
