import { useEffect, useState } from 'preact/hooks';
import type { Side } from '../api/types';
import { figuresOf, type NodeFigures } from '../model/findings';
import { useSession } from './context';

const NO_FIGURES: NodeFigures = { output: null, input: null };

/** The percentages that the table of a node shows; null until they are there, or where they are not wanted. */
export function useFigures(side: Side, name: string, wanted: boolean): NodeFigures | null {
  const session = useSession();
  const [found, setFound] = useState<NodeFigures | null>(null);
  useEffect(() => {
    setFound(null);
    if (!wanted) return;
    let gone = false;
    session.detailsOf(side, name).then(
      (details) => !gone && setFound(figuresOf(details)),
      () => !gone && setFound(NO_FIGURES), // the node itself says so when one goes there
    );
    return () => void (gone = true);
  }, [session, side, name, wanted]);
  return found;
}
