import type { Activations } from './activations';
import { readNode, type NodeList } from './node_list';
import type { ConversionState, ConvertApi, Listing } from './convert';
import type { TensorApi, TensorPreview } from './tensor';
import type { Verdict } from './verdict';
import type { Children, Config, FileList, Findings, GraphRef, HitSort, Layer, Links, MatchChange, MatchState, MatrixCell, NodeDetails, NodeHistory, NodeSummary, PartnerSuggestion, SearchResult, SeekHit, Side, Summary } from './types';

/** A request that failed; the message is the server's own line, fit to be shown. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly reason: string | null = null, // a word of the server's, where it has one
  ) {
    super(message);
  }
}

/** An exported page does not hold these values; it holds these slices of the tensor, or nothing. */
export class NotHeld extends ApiError {
  constructor(
    name: string,
    readonly slices: number[],
  ) {
    super(name, 404);
  }
}

export interface SearchQuery {
  q: string;
  level?: string | undefined; // one Level, or several with commas between them
  leaf?: 1 | undefined; // no nodes with others in them
  sort?: HitSort | undefined; // none: execution
  offset?: number | undefined;
  limit?: number;
}

export interface SeekQuery {
  level?: string | undefined;
  leaf?: 1 | undefined;
  q?: string | undefined;
  sort?: HitSort | undefined;
  from?: string | undefined;
  direction: 1 | -1;
}

export type MatchAction = 'add' | 'remove' | 'apply' | 'save' | 'undo' | 'redo';

export interface MatchRequest {
  npu?: string;
  bench?: string;
  descendants?: boolean;
  config?: string;
  revision?: string;
}

export interface MatchApi {
  state(graph: GraphRef): Promise<MatchState>;
  change(graph: GraphRef, action: MatchAction, request: MatchRequest): Promise<MatchChange>;
  suggest(graph: GraphRef, side: Side, name: string): Promise<PartnerSuggestion[]>;
}

/** What the model asks for; the page uses HttpApi, tests a table in memory. */
export interface Api {
  files(): Promise<FileList>;
  config(file: string): Promise<Config>;
  verdict(file: string): Promise<Verdict>;
  summary(graph: GraphRef): Promise<Summary>;
  children(graph: GraphRef, side: Side, name: string): Promise<Children>;
  path(graph: GraphRef, side: Side, name: string): Promise<string[]>;
  node(graph: GraphRef, side: Side, name: string): Promise<NodeDetails>;
  search(graph: GraphRef, side: Side, query: SearchQuery): Promise<SearchResult>;
  seek(graph: GraphRef, side: Side, query: SeekQuery): Promise<SeekHit>;
  links(graph: GraphRef, side: Side, name: string): Promise<Links>;
  matrix(file: string): Promise<MatrixCell[]>;
  history(file: string, side: Side, name: string): Promise<NodeHistory>;
  findings(graph: GraphRef): Promise<Findings>;
  layers(graph: GraphRef): Promise<Layer[]>;
  activations(graph: GraphRef): Promise<Activations>;
  readonly exported?: true; // a page without a server
  readonly matching?: MatchApi;
  readonly tensor?: TensorApi;
  readonly conversions?: ConvertApi;
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
  verdict(file: string) {
    return this.get<Verdict>('verdict', { file });
  }
  summary(graph: GraphRef) {
    return this.get<Summary>('summary', { ...graph });
  }
  async children(graph: GraphRef, side: Side, name: string) {
    const { node, children } = await this.get<{ node: NodeSummary; children: NodeList[] }>('children', { ...graph, side, name, rows: 1 });
    return { node, children: children.map(readNode) };
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
  history(file: string, side: Side, name: string) {
    return this.get<NodeHistory>('history', { file, side, name });
  }
  findings(graph: GraphRef) {
    return this.get<Findings>('findings', { ...graph });
  }
  async layers(graph: GraphRef) {
    return (await this.get<{ layers: Layer[] }>('layers', { ...graph })).layers;
  }

  activations(graph: GraphRef) {
    return this.get<Activations>('activations', { ...graph });
  }

  readonly matching: MatchApi = {
    state: (graph) => this.get<MatchState>('matches', { ...graph }),
    change: (graph, action, request) => this.ask<MatchChange>(`match/${action}`, { ...graph }, request),
    suggest: async (graph, side, name) => (await this.get<{ suggestions: PartnerSuggestion[] }>('suggestions', { ...graph, side, name })).suggestions,
  };

  readonly tensor: TensorApi = (graph, query) => this.get<TensorPreview>('tensor', { ...graph, ...query });

  readonly conversions: ConvertApi = {
    state: () => this.get<ConversionState>('conversion', {}),
    list: (path) => this.get<Listing>('dirs', { path }),
    start: (request) => this.ask<ConversionState>('convert', {}, request),
    cancel: (id) => this.ask<ConversionState>('convert/cancel', {}, { id }),
  };

  get<T>(what: string, params: Params): Promise<T> {
    return this.ask<T>(what, params);
  }

  /** With a body it is a POST. */
  private async ask<T>(what: string, params: Params, content?: object): Promise<T> {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(params)) if (value !== undefined) query.set(key, String(value));
    let response: Response;
    try {
      const token = { 'X-Msprobe-Token': this.token };
      const post = content && { method: 'POST', body: JSON.stringify(content), headers: { ...token, 'Content-Type': 'application/json' } };
      response = await fetch(`api/${what}?${query}`, post ?? { headers: token });
    } catch {
      throw new ApiError('', 0); // no answer at all: the server has ended, the page words that itself
    }
    const body: unknown = await response.json().catch(() => null);
    if (response.ok && body !== null) return body as T;
    const { error, reason } = (body ?? {}) as { error?: unknown; reason?: unknown };
    throw new ApiError(typeof error === 'string' ? error : `HTTP ${response.status}`, response.status, typeof reason === 'string' ? reason : null);
  }
}
