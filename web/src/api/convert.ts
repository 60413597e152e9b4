export type DumpKind = '' | 'rank' | 'step' | 'run';

export interface Listing {
  path: string;
  kind: DumpKind;
  dirs: { name: string; kind: DumpKind }[];
  files: string[]; // YAML
  cut: boolean;
}

export interface Conversion {
  id: number;
  state: 'running' | 'cancelling' | 'done' | 'failed' | 'cancelled';
  percent: number;
  seconds: number;
  command: string[];
  file: string | null;
  text: string;
  error: string;
  error_zh: string;
  log: string[];
  log_zh: string[];
}

export interface ConversionState {
  enabled: boolean;
  templates: string[];
  conversion: Conversion | null;
}

/** Members are the long options of graph_visualize. */
export interface ConvertRequest {
  target_path: string;
  output_path: string;
  golden_path?: string;
  layer_mapping?: true | string;
  template?: string;
  overflow_check?: true;
  fuzzy_match?: true;
  is_print_compare_log?: true;
  thresholds?: string;
  structure?: true;
  suggest_mapping?: string;
  plain?: true;
  engine?: 'ray';
  rank_size?: number[];
  tp?: number[];
  pp?: number[];
  vpp?: number[];
  cp?: number[];
  ep?: number[];
  order?: string[];
  layout?: string[];
  plan?: true;
  file_type?: 'json';
}

/** What the page asks of a host that can convert dumps. */
export interface ConvertApi {
  state(): Promise<ConversionState>;
  list(path: string): Promise<Listing>;
  start(request: ConvertRequest): Promise<ConversionState>;
  cancel(id: number): Promise<ConversionState>;
}
