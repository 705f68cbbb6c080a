// Answers to questions that change while they are asked: the old answer stays until the new one is there, only the last counts.
import { useEffect, useRef, useState } from "preact/hooks";

export interface Answered<T> {
  value: T | null;
  error: Error | null;
  isAsking: boolean;
}

/** Asks when the key changes; a key of null asks nothing. `delay_ms` waits for a key that rests. */
export function useLatest<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>, delay_ms = 0): Answered<T> {
  const [answered, setAnswered] = useState<Answered<T>>({ value: null, error: null, isAsking: key !== null });
  const asking = useRef(ask);
  asking.current = ask;
  useEffect(() => {
    if (key === null) {
      setAnswered({ value: null, error: null, isAsking: false });
      return undefined;
    }
    const abort = new AbortController();
    setAnswered((before) => ({ ...before, isAsking: true }));
    const timer = setTimeout(() => {
      asking.current(abort.signal).then(
        (value) => !abort.signal.aborted && setAnswered({ value, error: null, isAsking: false }),
        (error: unknown) => {
          if (abort.signal.aborted) return;
          setAnswered((before) => ({ ...before, error: error instanceof Error ? error : new Error(String(error)), isAsking: false }));
        },
      );
    }, delay_ms);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key]);
  return answered;
}
