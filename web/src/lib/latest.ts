// Answers to questions that change while they are asked: the old answer stays until the new one is there, only the last counts.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { contains, type Range } from "./range";

export interface Answered<T> {
  value: T | null;
  error: Error | null;
  isAsking: boolean;
}

/**
 * Asks when the key changes, before the next picture; a key of null asks nothing. `delay_ms` waits for a key that rests.
 * An effect would come after that picture: a sixtieth of a second in which nobody has been asked yet.
 */
export function useLatest<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>, delay_ms = 0): Answered<T> {
  const [answered, setAnswered] = useState<Answered<T>>({ value: null, error: null, isAsking: key !== null });
  const asking = useRef(ask);
  asking.current = ask;
  useLayoutEffect(() => {
    if (key === null) {
      setAnswered({ value: null, error: null, isAsking: false });
      return undefined;
    }
    const abort = new AbortController();
    setAnswered((before) => ({ ...before, isAsking: true }));
    const begin = () => {
      asking.current(abort.signal).then(
        (value) => !abort.signal.aborted && setAnswered({ value, error: null, isAsking: false }),
        (error: unknown) => {
          if (abort.signal.aborted) return;
          setAnswered((before) => ({ ...before, error: error instanceof Error ? error : new Error(String(error)), isAsking: false }));
        },
      );
    };
    const timer = delay_ms ? setTimeout(begin, delay_ms) : void begin();
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key]);
  return answered;
}

export interface Covered<T> {
  range: Range;
  value: T;
}

/**
 * An answer for at least this range: what was asked for a larger one is kept while it holds all and is not much too large.
 * Panning and zooming within it ask nothing.
 */
export function useCovering<T>(
  range: Range, salt: string, ask: (range: Range, signal: AbortSignal) => Promise<T>, isWhole: (value: T) => boolean, delay_ms: number,
): Answered<T> {
  const kept = useRef<{ salt: string; found: Covered<T> } | null>(null);
  const known = kept.current;
  const isKept = known !== null && known.salt === salt && contains(known.found.range, range) && isWhole(known.found.value);
  const wanted = isKept ? known.found.range : range;
  const asked = async (signal: AbortSignal) => ({ range: wanted, value: await ask(wanted, signal) });
  const answer = useLatest<Covered<T>>(`${wanted.join()}/${salt}`, asked, delay_ms);
  if (answer.value && answer.value !== known?.found && !answer.isAsking) kept.current = { salt, found: answer.value };
  return { ...answer, value: answer.value?.value ?? null };
}
