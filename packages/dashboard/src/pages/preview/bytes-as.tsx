import { Code } from '../../components/data/code.js';
import { bytesOf, hexDump, textOf, type Raw } from './bytes.js';

export const FORMS = [
  ['text', 'Text'],
  ['json', 'JSON'],
  ['hex', 'Hex'],
] as const;

/** A message's bytes in one of `FORMS`; renders nothing for another value. */
export function BytesAs({ form, raw }: { readonly form: string; readonly raw: Raw }) {
  if (form === 'text') return <Code isRaw label="Message" text={textOf(raw)} />;
  if (form === 'json') return <Json text={textOf(raw)} />;
  if (form === 'hex') return <Code isRaw isTable label="Bytes" text={hexDump(bytesOf(raw))} />;
  return null;
}

function Json({ text }: { readonly text: string }) {
  try {
    JSON.parse(text);
  } catch (error) {
    return <p>It is not JSON: {(error as Error).message}.</p>;
  }
  return <Code label="JSON" text={text} />;
}
