// Opens the fleet's page: who is signed in first, by the token of the link, by the cookie, or by hand.
import { render } from "preact";
import { useState } from "preact/hooks";
import { NotSignedIn, type CollectorSource } from "../logic/source";
import { makeApp } from "./app";
import { watchKeys } from "./keys";
import { Page } from "./page";

export async function start(place: HTMLElement, source: CollectorSource): Promise<void> {
  const given = takenToken();
  try {
    const reader = given ? await source.signIn(given) : await source.reader();
    const app = makeApp(source);
    render(<Page app={app} reader={reader} />, place);
    watchKeys(app);
    // A link with a token that is pasted into the open page.
    window.addEventListener("hashchange", () => new URLSearchParams(location.hash.slice(1)).has("token") && location.reload());
  } catch (error) {
    render(<SignIn source={source} error={error} again={() => void start(place, source)} />, place);
  }
}

/** The token of a link leaves the address at once: addresses are shared. */
function takenToken(): string | null {
  const words = new URLSearchParams(location.hash.slice(1));
  const token = words.get("token");
  if (token === null) return null;
  words.delete("token");
  history.replaceState(null, "", words.size ? `#${words.toString()}` : location.pathname);
  return token;
}

function SignIn({ source, error, again }: { source: CollectorSource; error: unknown; again: () => void }) {
  const [problem, setProblem] = useState<unknown>(error);
  const submitted = (event: SubmitEvent) => {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget as HTMLFormElement).get("token") ?? "").trim();
    source.signIn(token).then(again, setProblem);
  };
  const isFirst = problem instanceof NotSignedIn && problem.isMissing;
  return (
    <form class="failure" id="sign-in" onSubmit={submitted}>
      <h1><span class="brand">necroscope</span> fleet</h1>
      <p>This page shows what the nodes of a fleet have pushed. It needs a token that may read.</p>
      <p class="token-row">
        <input name="token" type="password" required autoFocus autocomplete="off" placeholder="necro_…" aria-label="token" />
        <button type="submit">open</button>
      </p>
      {!isFirst && <p class="happened" role="alert">{problem instanceof Error ? problem.message : String(problem)}</p>}
      <p class="faint">Make one with <code>necroscope fleet token new --role read --cluster NAME --to tokens.toml</code>, or open a link that ends in <code>#token=…</code></p>
    </form>
  );
}
