import { isHeaderValue } from './headers.js';

/** The message of an event, as `transform` gets it. */
export interface TemplateMessage {
  readonly headers?: Readonly<Record<string, string>>;
  readonly [part: string]: unknown;
}

/** Servers commonly accept 8 KB of headers in total. */
export const TEMPLATED_CHARS_MAX = 4_096;

const HOLE = /\{\{(.*?)\}\}/g;
const PATH =
  /^message\.(?:(key|timestamp|topic|partition|offset)|(headers|attributes|query)\.(.+))$/;

export function isTemplate(value: string): boolean {
  return value.includes('{{');
}

/** Undefined if each `{{ … }}` of the text is a part of the message. */
export function templateProblem(text: string): string | undefined {
  for (const [hole, path] of text.matchAll(HOLE))
    if (!PATH.test(path!.trim()))
      return `holds ${hole}: write {{ message.key }}, .topic, .partition, .offset, .timestamp, .headers.NAME, .attributes.NAME or .query.NAME`;
  return text.replace(HOLE, '').includes('{{') ? 'holds {{ without }}' : undefined;
}

/** Undefined if a part is missing, or if HTTP cannot carry the result. */
export function fillTemplate(text: string, message: TemplateMessage): string | undefined {
  let isComplete = true;
  const filled = text.replace(HOLE, (_, path: string) => {
    const [, part, parts, name] = PATH.exec(path.trim()) ?? [];
    const value = part ? message[part] : parts && valueOf(message[parts], name!);
    if (typeof value === 'string' || typeof value === 'number') return String(value);
    isComplete = false;
    return '';
  });
  return isComplete && filled.length <= TEMPLATED_CHARS_MAX && isHeaderValue(filled)
    ? filled
    : undefined;
}

/** Names of headers have any case. */
function valueOf(of: unknown, name: string): unknown {
  const entries = Object.entries((of ?? {}) as Record<string, unknown>);
  return (entries.find(([it]) => it === name) ??
    entries.find(([it]) => it.toLowerCase() === name.toLowerCase()))?.[1];
}
