// Asks the collector. The reader's token is in a cookie that this page cannot see; an error is shown as the collector words it.
import { address, ServerError } from "../../logic/server_source";
import type {
  ChangeAnswer, Choices, DiffAnswer, FlameRows, IncidentAnswer, IncidentRow, IncidentsAnswer, JobStory, JobsAnswer, NodesAnswer, Reader, TimelineAnswer, WhyAnswer, WorstCores,
} from "./answers";
import type { State } from "./state";

export class NotSignedIn extends ServerError {
  constructor(facts: string, hint: string, readonly isMissing: boolean) {
    super(facts, hint);
  }
}

const MOST_INCIDENTS = 2000;
type Words = Parameters<typeof address>[1];
type Time = Pick<State, "since" | "until">;

export interface CollectorSource {
  reader(): Promise<Reader>;
  signIn(token: string): Promise<Reader>;
  signOut(): Promise<void>;
  choices(time: Time, signal?: AbortSignal): Promise<Choices>;
  timeline(state: State, signal?: AbortSignal): Promise<TimelineAnswer>;
  why(state: State, signal?: AbortSignal): Promise<WhyAnswer>;
  nodes(state: State, signal?: AbortSignal): Promise<NodesAnswer>;
  worstCores(time: Time, signal?: AbortSignal): Promise<WorstCores>;
  incidents(state: State, signal?: AbortSignal): Promise<IncidentsAnswer>;
  incident(row: IncidentRow, signal?: AbortSignal): Promise<IncidentAnswer>;
  diff(a: string, b: string, time: Time, signal?: AbortSignal): Promise<DiffAnswer>;
  change(state: State, signal?: AbortSignal): Promise<ChangeAnswer>;
  jobs(state: State, by: string, signal?: AbortSignal): Promise<JobsAnswer>;
  job(run: { job: string; at: string }, time: Time, signal?: AbortSignal): Promise<JobStory>;
  flame(where: string, baseline: string | null, time: Time, signal?: AbortSignal): Promise<FlameRows>;
}

export function collectorSource(): CollectorSource {
  const timed = ({ since, until }: Time): Words => ({ since, until });
  const chosen = (state: State): Words => ({ ...timed(state), where: state.where });
  const about = ({ about: { what, name } }: State): Words => ({ [what]: name });
  return {
    reader: () => ask("v1/session", {}),
    signIn: (token) => ask("v1/session", {}, { method: "POST", headers: { Authorization: `Bearer ${token}` } }),
    signOut: async () => void (await ask("v1/session", {}, { method: "DELETE" })),
    choices: (time, signal) => ask("v1/choices", timed(time), withSignal(signal)),
    timeline: (state, signal) => ask("v1/timeline", { ...chosen(state), ...about(state), by: state.by }, withSignal(signal)),
    why: (state, signal) => ask("v1/why", { ...chosen(state), ...about(state) }, withSignal(signal)),
    nodes: (state, signal) => ask("v1/nodes", chosen(state), withSignal(signal)),
    worstCores: (time, signal) => ask("v1/worst-cores", timed(time), withSignal(signal)),
    incidents: (state, signal) => ask("v1/incidents", { ...chosen(state), cause: causeOf(state), limit: MOST_INCIDENTS }, withSignal(signal)),
    incident: ({ cluster, node, id }, signal) => ask(`v1/incidents/${[cluster, node, id].map(encodeURIComponent).join("/")}`, {}, withSignal(signal)),
    diff: (a, b, time, signal) => ask("v1/diff", { ...timed(time), a, b }, withSignal(signal)),
    change: (state, signal) => ask("v1/change", { ...timed(state), ...about(state), fact: state.fact }, withSignal(signal)),
    jobs: (state, by, signal) => ask("v1/jobs", { ...chosen(state), by, limit: MOST_INCIDENTS }, withSignal(signal)),
    job: (run, time, signal) => ask("v1/job", { ...timed(time), ...run }, withSignal(signal)),
    flame: (where, baseline, time, signal) => ask("v1/flame", { ...timed(time), where, baseline }, withSignal(signal)),
  };
}

const causeOf = ({ about: { what, name }, isAll }: State): string | null => (what === "cause" && !isAll ? name : null);
const withSignal = (signal?: AbortSignal): RequestInit => (signal ? { signal } : {});

async function ask<Answer>(path: string, words: Words, options: RequestInit = {}): Promise<Answer> {
  const response = await fetch(address(path, words), options).catch((error: unknown) => {
    if (options.signal?.aborted) throw error;
    throw new ServerError("the collector does not answer", "is it still running?");
  });
  if (!response.ok) throw await refusal(response);
  return (await response.json()) as Answer;
}

async function refusal(response: Response): Promise<ServerError> {
  const text = await response.text();
  try {
    const { error, hint } = JSON.parse(text) as { error: string; hint: string };
    return response.status === 401 ? new NotSignedIn(error, hint, error.includes("missing")) : new ServerError(error, hint);
  } catch {
    return new ServerError(text.slice(0, 300) || `the collector answered ${response.status}`, "");
  }
}
