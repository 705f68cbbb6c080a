// An answer that may still be on its way, or that is an error with its way out.
import type { ComponentChildren } from "preact";
import type { Answered } from "../../lib/latest";
import { ServerError } from "../../logic/server_source";

interface AskedProps<T> {
  answer: Answered<T>;
  asking: string;
  children: (value: T) => ComponentChildren;
}

export function Asked<T>({ answer, asking, children }: AskedProps<T>) {
  if (answer.error) return <Failed error={answer.error} />;
  if (answer.value === null) return <p class="empty" role="status"><span class="spinner" /> {asking}</p>;
  return <div class={answer.isAsking ? "waiting" : ""} aria-busy={answer.isAsking}>{children(answer.value)}</div>;
}

export function Failed({ error }: { error: Error }) {
  return (
    <div class="empty" role="alert">
      <p>{error.message}</p>
      {error instanceof ServerError && error.hint && <p class="faint">{error.hint}</p>}
    </div>
  );
}
