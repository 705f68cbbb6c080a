// Arrays behind a JSON header, mapped without parsing: uint32 length, header, then arrays, all padded to 8 bytes, little-endian.

const TYPES = { u8: Uint8Array, i32: Int32Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array } as const;
type TypeName = keyof typeof TYPES;
export type Numbers = Uint8Array | Int32Array | Uint32Array | Float32Array | Float64Array;

interface Described {
  name: string;
  type: TypeName;
  shape: number[];
}

export interface Packed<Header> {
  header: Header;
  arrays: Record<string, Numbers>;
}

export function unpack<Header>(data: ArrayBuffer): Packed<Header> {
  const length = new DataView(data).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length))) as Header & { arrays: Described[] };
  const arrays: Record<string, Numbers> = {};
  let place = padded(4 + length);
  for (const { name, type, shape } of header.arrays) {
    const count = shape.reduce((product, size) => product * size, 1);
    arrays[name] = new TYPES[type](data, place, count);
    place = padded(place + count * TYPES[type].BYTES_PER_ELEMENT);
  }
  return { header, arrays };
}

function padded(size: number): number {
  return Math.ceil(size / 8) * 8;
}

/** The data within an exported page. */
export async function unzipped(base64: string): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
