// A value that tells who watches it when it changes: all the state management that the page needs.
import { useEffect, useState } from "preact/hooks";

export interface Atom<T> {
  get(): T;
  set(value: T): void;
  watch(watcher: (value: T) => void): () => void;
}

export function atom<T>(initial: T): Atom<T> {
  let value = initial;
  const watchers = new Set<(value: T) => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const watcher of [...watchers]) watcher(value);
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

export function useAtom<T>(source: Atom<T>): T {
  const [value, setValue] = useState(() => source.get());
  useEffect(() => {
    setValue(() => source.get());
    return source.watch((next) => setValue(() => next));
  }, [source]);
  return value;
}
