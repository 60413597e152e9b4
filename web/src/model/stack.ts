/** A frame as people read it: the code, and where it stands. */
export interface Frame {
  place: string; // "transformers/models/llama/modeling_llama.py:311"
  name: string; // of the function
  code: string;
}

const FRAME = /^\s*File "?(.+?)"?, line (\d+), in ([^\s,]+),?\s*([\s\S]*)$/;
// Which environment it is says nothing about the model, and takes half of the line.
const ENVIRONMENT = /^.*[\\/](?:site|dist)-packages[\\/]/;

/** null when the line is not a frame: it is shown as it is then. */
export function parseFrame(line: string): Frame | null {
  const match = FRAME.exec(line);
  if (!match) return null;
  const [, path = '', number = '', name = '', code = ''] = match;
  return { place: `${path.replace(ENVIRONMENT, '')}:${number}`, name, code: code.replace(/\s*\n\s*/g, '  ').trim() };
}
