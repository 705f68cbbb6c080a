// Pointer gestures on an element: a drag from one point to another, or a click where the pointer did not move.

export interface Point {
  x: number;
  y: number;
}

export interface Gesture {
  move?(from: Point, to: Point, event: PointerEvent): void;
  drop?(from: Point, to: Point, event: PointerEvent): void;
  click?(at: Point, event: PointerEvent): void;
}

const STILL = 3;

export function startGesture(event: PointerEvent, element: HTMLElement, gesture: Gesture): void {
  if (event.button !== 0) return;
  const box = element.getBoundingClientRect();
  const point = (at: PointerEvent): Point => ({ x: at.clientX - box.left, y: at.clientY - box.top });
  const from = point(event);
  let isMoved = false;
  element.setPointerCapture(event.pointerId);
  const moved = (next: PointerEvent) => {
    const to = point(next);
    isMoved ||= Math.hypot(to.x - from.x, to.y - from.y) > STILL;
    if (isMoved) gesture.move?.(from, to, next);
  };
  const ended = (last: PointerEvent) => {
    element.removeEventListener("pointermove", moved);
    element.removeEventListener("pointerup", ended);
    element.removeEventListener("pointercancel", ended);
    if (last.type === "pointercancel") return;
    if (isMoved) gesture.drop?.(from, point(last), last);
    else gesture.click?.(from, last);
  };
  element.addEventListener("pointermove", moved);
  element.addEventListener("pointerup", ended);
  element.addEventListener("pointercancel", ended);
}
