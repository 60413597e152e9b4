/** Of the details of a node. */
export const TABS = ['overview', 'items', 'tensor', 'history', 'flow', 'stack', 'merge'] as const;
export type Tab = (typeof TABS)[number];
