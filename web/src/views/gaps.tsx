// Asks for the gaps of the view, once for all lanes, which hatch them.
import { useEffect } from "preact/hooks";
import { useAtom } from "../lib/atom";
import { useCovering } from "../lib/latest";
import { useApp } from "./app";

const REST_MS = 140;

export function Gaps() {
  const app = useApp();
  const { view } = useAtom(app.state);
  const recording = useAtom(app.recording);
  const end = recording.live ? (recording.to ?? "") : "";
  const answer = useCovering(view, end, (range, signal) => app.source.gaps(range, signal), (found) => found.is_exact, app.rest(REST_MS));
  useEffect(() => app.gaps.set(answer.value), [answer.value]);
  return null;
}
