// Tiles of tracks: docs/format/view.md.

export interface Stretch { begin: number; end: number; state: number }
export interface Columns { count: number; shares: Uint8Array; leaders: Uint32Array }
/** Numbers from their instants on, or by columns: then how many came in each, the least and the greatest. NaN: nobody knows. */
export interface Numbers { at?: Float64Array; least: Float64Array; most: Float64Array; last: Float64Array; counts?: Uint32Array }
export interface TileTrack { id: string; stretches?: Stretch[]; columns?: Columns; numbers?: Numbers }
export interface Tile { begin: number; end: number; columns: number; tracks: Map<string, TileTrack> }

export const KINDS = 7;
export const kindOf = (state: number) => state & 7;
/** The detail of a state and one: zero where nobody knows. */
export const detailOf = (state: number) => state >>> 4;
export const isInferred = (state: number) => (state & 8) !== 0;

export function decode(bytes: ArrayBuffer): Tile {
  const view = new DataView(bytes);
  if (view.getUint32(0, true) !== 0x54565452 || view.getUint16(4, true) !== 1) throw new Error("not a tile of version 1");
  const tile: Tile = {
    begin: view.getFloat64(16, true), end: view.getFloat64(24, true), columns: view.getUint32(8, true), tracks: new Map(),
  };
  let at = 32;
  for (let left = view.getUint16(6, true); left > 0; left--) {
    const id = ("ctfiun"[view.getUint8(at + 4)] ?? "?") + view.getUint32(at, true);
    const [mode, count] = [view.getUint8(at + 5), view.getUint32(at + 8, true)];
    at += 16;
    if (mode === 0) {
      const stretches: Stretch[] = [];
      for (let i = 0; i < count; i++, at += 24) {
        stretches.push({ begin: view.getFloat64(at, true), end: view.getFloat64(at + 8, true), state: view.getUint32(at + 16, true) });
      }
      tile.tracks.set(id, { id, stretches });
    } else if (mode === 2) {
      const [times, last] = [new Float64Array(count), new Float64Array(count)];
      for (let i = 0; i < count; i++, at += 16) [times[i], last[i]] = [view.getFloat64(at, true), view.getFloat64(at + 8, true)];
      tile.tracks.set(id, { id, numbers: { at: times, least: last, most: last, last } });
    } else if (mode === 3) {
      const [least, most, last, counts] = [new Float64Array(count), new Float64Array(count), new Float64Array(count), new Uint32Array(count)];
      for (let i = 0; i < count; i++, at += 32) {
        [least[i], most[i], last[i]] = [view.getFloat64(at, true), view.getFloat64(at + 8, true), view.getFloat64(at + 16, true)];
        counts[i] = view.getUint32(at + 24, true);
      }
      tile.tracks.set(id, { id, numbers: { least, most, last, counts } });
    } else {
      const [shares, leaders] = [new Uint8Array(count * KINDS), new Uint32Array(count)];
      for (let i = 0; i < count; i++, at += 12) {
        for (let kind = 0; kind < KINDS; kind++) shares[i * KINDS + kind] = view.getUint8(at + kind);
        leaders[i] = view.getUint32(at + 8, true);
      }
      tile.tracks.set(id, { id, columns: { count, shares, leaders } });
    }
  }
  return tile;
}
