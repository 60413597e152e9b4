// Tiles of a run's map, fetched as they come into view and kept.
import type { RunApi, RunCell, RunSource, RunTile } from '../api/runs';
import { TILE_BINS, TILE_ROWS, type TilePlace } from './run_view';

const MOST_TILES = 600; // 64 KB each
const AT_ONCE = 4; // requests

export interface HeldTile extends RunTile {
  place: TilePlace;
  version: number; // of the run when it was asked for
  serial: number; // of this content
  picture?: { look: string; image: CanvasImageSource }; // as it was drawn last
}

export class RunTiles {
  private readonly held = new Map<string, HeldTile>();
  private readonly asked = new Set<string>();
  private wanted: TilePlace[] = [];
  private shown: TilePlace[] = [];
  private version = 0;
  private serial = 0;
  private gone = false;

  constructor(
    private readonly api: RunApi,
    private readonly source: RunSource & { cell: RunCell },
    private readonly onChange: (error?: unknown) => void,
  ) {}

  close(): void {
    this.gone = true;
  }

  /** The run has other values: tiles that are not final are asked for again, and shown until then. */
  setVersion(version: number): void {
    if (version === this.version) return;
    this.version = version;
    this.pump();
  }

  get(place: TilePlace): HeldTile | undefined {
    return this.held.get(keyOf(place));
  }

  /** The tile, or the finest coarser one that holds its bins, and where they begin in it. */
  find(place: TilePlace, coarsest: number): { tile: HeldTile; from: number; bins: number } | null {
    for (let up = 0; place.level + up <= coarsest; up++) {
      const scale = 2 ** up;
      const column = Math.floor(place.column / scale);
      const tile = this.held.get(keyOf({ level: place.level + up, column, page: place.page }));
      if (tile) return { tile, from: (place.column / scale - column) * TILE_BINS, bins: TILE_BINS / scale };
    }
    return null;
  }

  /** What is on the screen, and what may come next. */
  want(shown: TilePlace[], next: TilePlace[]): void {
    this.shown = shown;
    this.wanted = [...shown, ...next];
    for (const place of this.wanted) {
      const key = keyOf(place);
      const tile = this.held.get(key);
      if (tile) [this.held.delete(key), this.held.set(key, tile)]; // the last used stand last
    }
    this.pump();
  }

  /** All that is on the screen is there. */
  get settled(): boolean {
    return this.shown.every((place) => this.held.has(keyOf(place)));
  }

  private pump(): void {
    for (const place of this.wanted) {
      if (this.asked.size >= AT_ONCE || this.gone) return;
      const key = keyOf(place);
      const tile = this.held.get(key);
      if (this.asked.has(key) || (tile && (tile.final || tile.version === this.version))) continue;
      this.asked.add(key);
      void this.load(place, key, this.version);
    }
  }

  private async load(place: TilePlace, key: string, version: number): Promise<void> {
    try {
      const { level, column, page } = place;
      const tile = await this.api.tile({ ...this.source, level, from: column * TILE_BINS, bins: TILE_BINS, offset: page * TILE_ROWS, limit: TILE_ROWS });
      if (this.gone) return;
      this.held.set(key, { ...tile, place, version: tile.behind ? -1 : version, serial: ++this.serial });
      for (const old of this.held.keys()) {
        if (this.held.size <= MOST_TILES) break;
        this.held.delete(old);
      }
      this.onChange();
    } catch (error) {
      if (!this.gone) this.onChange(error);
      this.gone = true; // the next choice begins anew
    } finally {
      this.asked.delete(key);
    }
    this.pump();
  }
}

const keyOf = ({ level, column, page }: TilePlace) => `${level}/${column}/${page}`;
