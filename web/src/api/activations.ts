// What one run by itself shows; docs/page_api.md is the contract.

/** An output of an op. */
export interface ActivationItem {
  node: string;
  item: string;
  shape: string;
  dtype: string;
  value: string; // as the file has it; "" for the largest tensors
  bytes: number; // 0: not known
}

export interface ActivationCell {
  items: number;
  norm: number | null; // the largest of finite ones
  max: number | null; // likewise, of absolute values
  not_finite: boolean;
  node: string; // where the largest is, or the first that is not finite
}

export interface ActivationLayer {
  label: string;
  forward: ActivationCell | null;
  backward: ActivationCell | null;
}

export const ACTIVATION_KINDS = ['not_finite', 'huge', 'dead', 'constant', 'mask'] as const;
export type ActivationKind = (typeof ACTIVATION_KINDS)[number];

export type Activations = Record<ActivationKind, { count: number; first: ActivationItem[] }> & {
  ops: number;
  read: number; // less than `ops` where there are very many
  items: number; // floating-point outputs
  largest: ActivationItem[];
  layers: ActivationLayer[];
};
