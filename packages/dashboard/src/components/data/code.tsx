import { useState } from 'preact/hooks';
import { bytes } from '../../format/number.js';
import { pretty } from '../../format/json.js';
import { Button } from '../layout/button.js';
import { Copy } from './copy.js';

/**
 * Longer texts are cut until the user expands them: a browser needs seconds to lay out a megabyte.
 */
const SHOWN_MAX = 50_000;

interface CodeProps {
  readonly text: string;
  readonly label: string;
  readonly isRaw?: boolean;
  readonly isTable?: boolean;
}

/**
 * Text of a message, header or body; never rendered as HTML. JSON is indented unless `isRaw`; the
 * lines of a table do not wrap.
 */
export function Code({ text, label, isRaw = false, isTable = false }: CodeProps) {
  const [isWhole, setWhole] = useState(false);
  const laidOut = isRaw ? text : pretty(text);
  const isCut = !isWhole && laidOut.length > SHOWN_MAX;
  return (
    <figure class="code">
      <figcaption>
        <span>{label}</span>
        <Copy text={text} what={label} />
      </figcaption>
      {/* A scrolling region must be reachable by keyboard. */}
      <pre class={isTable ? 'unwrapped' : undefined} tabIndex={0} aria-label={label}>
        {isCut ? laidOut.slice(0, SHOWN_MAX) : laidOut}
      </pre>
      {isCut && <Button onPress={() => setWhole(true)}>Show all {bytes(laidOut.length)}</Button>}
    </figure>
  );
}
