"""Whether each function's share of samples is perf's: section shares of `scripts/bench recorder`.

The recorder and perf sample the same load at once, so that their samples are different ones of the
same work: of the functions that perf met most the two counts may differ by chance only. Then perf's
own samples are named by us and by `perf script`: there every count must be the same, but for
functions that have several names at one address.
"""

import math
import subprocess
from collections import Counter
from pathlib import Path

from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.store.flame import read_flame
from necroscope.store.functions import top_functions
from necroscope.store.query import Store

HEAD = ["function", "recorder", "perf", "z", "perf's samples named by us", "by `perf script`"]
MOST = 50
# By chance one of 370 functions lies further out than this, two of 50 in 1 of 100 runs.
FAR = 3.0


def innermost(store: Store, from_ns: int, to_ns: int) -> Counter[str]:
    """Samples of busy cores by their innermost function; what has no name is left out."""
    found: Counter[str] = Counter()
    for function in top_functions(read_flame(store, from_ns, to_ns)):
        if function.frame.function:
            found[function.frame.function] += function.self_weight
    return found


def scripted(data: Path) -> Counter[str]:
    """The same by perf, which names a sample's innermost function on a line of its own."""
    done = subprocess.run(
        ["perf", "script", "-i", str(data), "-G", "-F", "pid,ip,sym"],
        capture_output=True,
        text=True,
        errors="replace",
        check=True,
    )
    found: Counter[str] = Counter()
    for line in done.stdout.splitlines():
        pid, _, *symbol = line.split(maxsplit=2)
        if symbol and not (pid == "0" and symbol[0] in IDLE_FUNCTIONS):
            found[symbol[0]] += 1
    return found


def distance(one: int, of_one: int, other: int, of_other: int) -> float:
    """How many standard deviations two shares lie apart."""
    share = (one + other) / (of_one + of_other)
    spread = math.sqrt(share * (1 - share) * (1 / of_one + 1 / of_other))
    return (one / of_one - other / of_other) / spread if spread else 0.0


def share_rows(recording: Path, imported: Path, data: Path) -> list[list[str]]:
    """The functions that perf met most; the last row judges them."""
    capture = Store.open(imported)
    info = capture.info()
    span = info.from_ns or 0, (info.to_ns or 0) + 1
    ours, theirs = innermost(Store.open(recording), *span), innermost(capture, *span)
    script = scripted(data)
    totals = ours.total(), theirs.total()
    rows, far, renamed = [], 0, 0
    for function, count in theirs.most_common(MOST):
        z = distance(ours[function], totals[0], count, totals[1])
        far += abs(z) > FAR
        renamed += script[function] != count
        shares = (f"{ours[function] / totals[0]:.2%}", f"{count / totals[1]:.2%}")
        rows.append([f"`{function}`", *shares, f"{z:+.1f}", str(count), str(script[function])])
    rows.append(
        [
            f"of {len(rows)}",
            f"{totals[0]} samples",
            f"{totals[1]}",
            f"{far} beyond {FAR:.0f}",
            "",
            f"{renamed} differ",
        ]
    )
    return rows
