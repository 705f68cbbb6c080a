// The 2x2 counts of a difference, as squares and bars, and how it stands to the first one.
import { useEffect, useRef } from "preact/hooks";
import { useAtom } from "../../lib/atom";
import { useWidth } from "../../lib/size";
import { theme } from "../../lib/theme";
import { drawWaffle } from "../draw/waffle";
import type { Leader, Table } from "../logic/answers";
import { percentText, rate, rateText, strata, withIt, withoutIt, type Cell, type Group } from "../logic/why";
import { waffle } from "../logic/waffle";
import { NodeName } from "./node_name";

const HIGHEST_PX = 105;
const MOST_NAMES = 12;

/** Each node a square, where they are few enough. */
export function Squares({ table }: { table: Table }) {
  const area = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(area);
  const look = useAtom(theme);
  const groups = [withIt(table), withoutIt(table)];
  const picture = width ? waffle(groups, width, HIGHEST_PX) : null;
  useEffect(() => {
    if (canvas.current && picture) drawWaffle(canvas.current, picture, look);
  });
  return (
    <div ref={area} class="squares">
      {picture && (
        <>
          <div class="box-names" style={{ gridTemplateColumns: `${picture.boxes[1]!.left}px 1fr` }}>
            <b>with it</b>
            <b>without</b>
          </div>
          <canvas ref={canvas} role="img" aria-label={`a square a node: with it ${rateText(groups[0]!)}, without it ${rateText(groups[1]!)}`} />
          <p class="key">
            <i class="square full" /> affected <i class="square" /> well
          </p>
        </>
      )}
    </div>
  );
}

/** Two bars, as long as the groups are large, full as far as they were affected. */
export function Bars({ table, isSmall = false }: { table: Table; isSmall?: boolean }) {
  const groups: [string, Group][] = [["with it", withIt(table)], ["without", withoutIt(table)]];
  const most = Math.max(...groups.map(([, { nodes }]) => nodes), 1);
  return (
    <table class={isSmall ? "counts small" : "counts"}>
      <tbody>
        {groups.map(([name, group]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="share">{group.nodes ? percentText(rate(group)) : "–"}</td>
            <td class="of">{rateText(group)}</td>
            <td class="group-bar">
              <span style={{ width: `${(100 * group.nodes) / most}%` }}>
                <i style={{ width: `${100 * rate(group)}%` }} />
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Who decides between two differences: nodes that have one of them only. */
export function Strata({ leader, first }: { leader: Leader; first: Leader }) {
  const [here, elsewhere] = strata(leader);
  return (
    <table class="strata">
      <thead>
        <tr>
          <td />
          <th scope="col" title={first.name}>{first.name}</th>
          <th scope="col">not so</th>
        </tr>
      </thead>
      <tbody>
        <tr>
          <th scope="row" title={shortName(leader)}>{shortName(leader)}</th>
          <StrataCell cell={here[0]} />
          <StrataCell cell={here[1]} />
        </tr>
        <tr>
          <th scope="row">not so</th>
          <StrataCell cell={elsewhere[0]} />
          <StrataCell cell={elsewhere[1]} />
        </tr>
      </tbody>
    </table>
  );
}

const shortName = (leader: Leader): string => leader.places[0]?.text ?? leader.name;

function StrataCell({ cell }: { cell: Cell }) {
  return (
    <td class={cell.names ? "decides" : ""} style={{ "--share": `${Math.round(rate(cell) * 100)}%` }}>
      <b>{cell.nodes ? percentText(rate(cell)) : "–"}</b> <span class="of">{rateText(cell)}</span>
      {cell.names && cell.nodes > 0 && (
        <p class="names">
          <span class="faint">these decide: </span>
          <Names names={cell.names.affected} isAffected />
          <Names names={cell.names.well} />
        </p>
      )}
    </td>
  );
}

function Names({ names, isAffected = false }: { names: string[]; isAffected?: boolean }) {
  const more = names.length - MOST_NAMES;
  return (
    <>
      {names.slice(0, MOST_NAMES).map((name) => (
        <NodeName key={name} name={name} isAffected={isAffected} />
      ))}
      {more > 0 && <span class="faint"> and {more} more that {isAffected ? "were affected" : "were well"} </span>}
    </>
  );
}
