// The size of an element on the screen, as it changes.
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

export function useWidth(element: RefObject<HTMLElement>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const target = element.current;
    if (!target) return undefined;
    const observer = new ResizeObserver(() => setWidth(target.clientWidth));
    setWidth(target.clientWidth);
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  return width;
}
