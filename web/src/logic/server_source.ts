// Asks the server. An error's facts and its way out are shown as the server words them.
import { unpack, type Packed } from "../lib/packed";
import type { Range } from "../lib/range";
import type { Clock } from "./moment";
import type { Choice, FlameQuestion, Source } from "./source";

type Words = Record<string, string | number | readonly string[] | null | undefined>;

export class ServerError extends Error {
  constructor(facts: string, readonly hint: string) {
    super(facts);
  }
}

export function address(path: string, words: Words): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(words)) {
    if (Array.isArray(value)) for (const each of value) given.append(name, each);
    else if (value !== null && value !== undefined && value !== "") given.set(name, String(value));
  }
  return `${path}?${given.toString()}`;
}

async function ask(path: string, words: Words, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(address(path, words), signal ? { signal } : {}).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new ServerError("the server does not answer", "is `necroscope view` still running?");
  });
  if (!response.ok) throw await readError(response);
  return response;
}

async function readError(response: Response): Promise<ServerError> {
  const text = await response.text();
  try {
    const { error, hint } = JSON.parse(text) as { error: string; hint: string };
    return new ServerError(error, hint);
  } catch {
    return new ServerError(text.slice(0, 300) || `the server answered ${response.status}`, "");
  }
}

const json = async <T>(path: string, words: Words, signal?: AbortSignal): Promise<T> =>
  (await ask(path, words, signal)).json() as Promise<T>;

const packed = async <Header>(path: string, words: Words, signal?: AbortSignal): Promise<Packed<Header>> =>
  unpack<Header>(await (await ask(path, words, signal)).arrayBuffer());

const chosen = ({ cpu, pid, comm, cgroup }: Choice): Words => ({ cpu, pid, comm, cgroup });

/** The clock is known only once the recording is. */
export function serverSource(at: () => Clock): Source {
  const window = ([from, to]: Range): Words => ({ from_ns: at().digits(from), to_ns: at().digits(to) });
  const baseline = (range: Range | null): Words =>
    range ? { baseline_from_ns: at().digits(range[0]), baseline_to_ns: at().digits(range[1]) } : {};
  return {
    isEmbedded: false,
    firstState: "",
    recording: (signal) => json("api/recording", {}, signal),
    report: (signal) => json("api/report", {}, signal),
    cores: (view, columns, withDelay, signal) => packed("api/cores", { ...window(view), columns, delay: withDelay ? 1 : 0 }, signal),
    heat: (minute, choice, rows, signal) => packed("api/heat", { ...window(minute), ...chosen(choice), rows }, signal),
    flame: (question, signal) => packed("api/flame", flameWords(question, window, baseline), signal),
    events: (view, signal) => json("api/events", { ...window(view), limit: 3000 }, signal),
    tasks: (range, cpu, signal) => json("api/tasks", { ...window(range), cpu }, signal),
    cgroups: (view, signal) => json("api/cgroups", window(view), signal),
    counters: (view, signal) => json("api/counters", window(view), signal),
    waits: (view, signal) => json("api/waits", window(view), signal),
    gaps: (view, signal) => json("api/gaps", window(view), signal),
  };
}

function flameWords(question: FlameQuestion, window: (range: Range) => Words, baseline: (range: Range | null) => Words): Words {
  return {
    ...window(question.window),
    ...baseline(question.baseline),
    ...chosen(question),
    by: question.of === "waits" ? [] : question.group.split(",").filter(Boolean),
    callers: question.isTurned && question.of !== "waits" ? "true" : null,
    of: question.of === "waits" ? question.of : null,
    least: question.least || null,
  };
}
