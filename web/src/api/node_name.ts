// What the name of a node says of it.

/** "model.layers.2.mlp" of "Module.model.layers.2.mlp.MLP.forward.0". */
export function modulePath(name: string): string {
  return name.replace(/^(Module|Cell)\./, '').replace(/\.[^.]+\.(forward|backward)(\.\d+)?$/, '');
}

/** "linear" of "Functional.linear.7.forward", the class of a module; '' of what is no op. */
export function opNameOf(name: string): string {
  const [, called] = /^(.+)\.(?:forward|backward|parameters_grad)(?:\.|$)/s.exec(name) ?? [];
  const [, kind, path] = /^([^.]*)\.(.*)$/s.exec(called ?? '') ?? [];
  if (kind === undefined || path === undefined) return '';
  return kind === 'Module' || kind === 'Cell' ? path.slice(path.lastIndexOf('.') + 1) : path.replace(/\.[0-9]+$/, '');
}
