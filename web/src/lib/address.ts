// Writes what is chosen into the address: a step of its own for another place, else when it rests.
let writing: ReturnType<typeof setTimeout> | undefined;

/** Browsers refuse hundreds of history entries a minute: what is typed or dragged is written when it rests. */
export function remember(hash: string, isStep: boolean): void {
  clearTimeout(writing);
  if (isStep) history.pushState(null, "", hash);
  else writing = setTimeout(() => history.replaceState(null, "", hash), 150);
}
