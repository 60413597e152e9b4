import type { Children, Config, FileList, Findings, GraphRef, Layer, Level, Links, MatrixCell, NodeDetails, SearchResult, SeekHit, Side, Summary } from './types';

/** A request that failed; the message is the server's own line, fit to be shown. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

export interface SearchQuery {
  q: string;
  level?: Level | undefined;
  limit?: number;
}

export interface SeekQuery {
  level?: Level | undefined;
  q?: string | undefined;
  from?: string | undefined;
  direction: 1 | -1;
}

/** What the model asks for; the page uses HttpApi, tests a table in memory. */
export interface Api {
  files(): Promise<FileList>;
  config(file: string): Promise<Config>;
  summary(graph: GraphRef): Promise<Summary>;
  children(graph: GraphRef, side: Side, name: string): Promise<Children>;
  path(graph: GraphRef, side: Side, name: string): Promise<string[]>;
  node(graph: GraphRef, side: Side, name: string): Promise<NodeDetails>;
  search(graph: GraphRef, side: Side, query: SearchQuery): Promise<SearchResult>;
  seek(graph: GraphRef, side: Side, query: SeekQuery): Promise<SeekHit>;
  links(graph: GraphRef, side: Side, name: string): Promise<Links>;
  matrix(file: string): Promise<MatrixCell[]>;
  findings(graph: GraphRef): Promise<Findings>;
  layers(graph: GraphRef): Promise<Layer[]>;
}

type Params = Record<string, string | number | undefined>;

export class HttpApi implements Api {
  constructor(private readonly token: string) {}

  files() {
    return this.get<FileList>('files', {});
  }
  config(file: string) {
    return this.get<Config>('config', { file });
  }
  summary(graph: GraphRef) {
    return this.get<Summary>('summary', { ...graph });
  }
  children(graph: GraphRef, side: Side, name: string) {
    return this.get<Children>('children', { ...graph, side, name });
  }
  async path(graph: GraphRef, side: Side, name: string) {
    return (await this.get<{ path: string[] }>('path', { ...graph, side, name })).path;
  }
  node(graph: GraphRef, side: Side, name: string) {
    return this.get<NodeDetails>('node', { ...graph, side, name });
  }
  search(graph: GraphRef, side: Side, query: SearchQuery) {
    return this.get<SearchResult>('search', { ...graph, side, ...query });
  }
  seek(graph: GraphRef, side: Side, query: SeekQuery) {
    return this.get<SeekHit>('seek', { ...graph, side, ...query });
  }
  links(graph: GraphRef, side: Side, name: string) {
    return this.get<Links>('links', { ...graph, side, name });
  }
  async matrix(file: string) {
    return (await this.get<{ cells: MatrixCell[] }>('matrix', { file })).cells;
  }
  findings(graph: GraphRef) {
    return this.get<Findings>('findings', { ...graph });
  }
  async layers(graph: GraphRef) {
    return (await this.get<{ layers: Layer[] }>('layers', { ...graph })).layers;
  }

  private async get<T>(what: string, params: Params): Promise<T> {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(params)) if (value !== undefined) query.set(key, String(value));
    let response: Response;
    try {
      response = await fetch(`api/${what}?${query}`, { headers: { 'X-Msprobe-Token': this.token } });
    } catch {
      throw new ApiError('', 0); // no answer at all: the server has ended, the page words that itself
    }
    const body: unknown = await response.json().catch(() => null);
    if (response.ok && body !== null) return body as T;
    const text = (body as { error?: unknown } | null)?.error;
    throw new ApiError(typeof text === 'string' ? text : `HTTP ${response.status}`, response.status);
  }
}
