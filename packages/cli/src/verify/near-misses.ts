import { createHmac } from 'node:crypto';
import type { Received } from './received.js';
import type { GivenSecret } from './secret.js';

/** A mistake that receivers make, and the bytes or the key that they would sign with. */
interface Mistake {
  readonly sentence: string;
  readonly body?: Buffer;
  readonly key?: Buffer | string;
  readonly signed?: string;
}

/**
 * The usual mistake that explains why a Standard Webhooks signature does not match, as a sentence without its full stop; undefined when none does.
 *
 * @param signature the part after `v1,`
 */
export function nearMiss(signature: string, received: Received, secret: GivenSecret): string | undefined {
  const { id, timestamp } = received;
  const matches = ({ body = received.body, key = secret.key, signed = `${id}.${timestamp}.` }: Mistake) => {
    const expected = createHmac('sha256', key).update(signed).update(body).digest();
    return expected.toString('base64') === signature || expected.toString('hex') === signature.toLowerCase();
  };
  const mistake = mistakes(received, secret).find(matches);
  if (mistake) return mistake.sentence;
  return matches({ sentence: '' }) ? 'it is right but written in hex; v1 signatures are base64' : undefined;
}

function mistakes({ body, id, timestamp }: Received, { text }: GivenSecret): Mistake[] {
  return [
    ...bodyMistakes(body),
    { sentence: 'it was made with the text of the secret instead of the bytes that the base64 after whsec_ stands for', key: text },
    {
      sentence: 'it was made with the text after whsec_ instead of the bytes that its base64 stands for',
      key: text.replace(/^whsec_/, ''),
    },
    { sentence: 'it is an HMAC of the body alone; Standard Webhooks sign `<id>.<timestamp>.<body>`', signed: '' },
    {
      sentence: 'it is an HMAC of the body alone with the whole text of the secret: give it as --plain-signature',
      signed: '',
      key: text,
    },
    { sentence: 'it lacks the id: Standard Webhooks sign `<id>.<timestamp>.<body>`', signed: `${timestamp}.` },
    ...(/^\d{13}$/.test(timestamp)
      ? [
          {
            sentence: 'it matches with the timestamp in seconds; the one given is in milliseconds',
            signed: `${id}.${timestamp.slice(0, -3)}.`,
          },
        ]
      : []),
  ];
}

const DIFFERS = 'the body differs from what was signed:';

function bodyMistakes(body: Buffer): Mistake[] {
  const text = body.toString('utf8');
  const variants: [string, string | undefined][] = [
    [`${DIFFERS} it matches without the line break at its end, which an editor or echo added`, text.replace(/(\r?\n)+$/, '')],
    [`${DIFFERS} it matches with a line break at its end, which was cut off`, `${text}\n`],
    [`${DIFFERS} it matches without the byte order mark at its beginning`, text.replace(/^\ufeff/, '')],
    [`${DIFFERS} it matches with plain line feeds, and it has carriage returns`, text.replaceAll('\r\n', '\n')],
    [`${DIFFERS} it matches without white space at its ends`, text.trim()],
    ...jsonVariants(text).map((variant): [string, string] => [
      `${DIFFERS} it matches when its JSON is written anew. Verify the bytes as they came, before anything parses them`,
      variant,
    ]),
  ];
  return variants.flatMap(([sentence, variant]) =>
    variant === undefined || variant === text ? [] : [{ sentence, body: Buffer.from(variant) }],
  );
}

/** The same JSON as a program would write it: without white space, with two or four spaces, or as Python does. */
function jsonVariants(text: string): string[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return [];
  }
  const indented = [2, 4].map((spaces) => JSON.stringify(value, null, spaces));
  return [JSON.stringify(value), ...indented, ...indented.map((it) => `${it}\n`), spaced(value)];
}

/** `json.dumps` of Python: a space behind colons and commas. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, it]) => `${JSON.stringify(name)}: ${spaced(it)}`)
    .join(', ')}}`;
}
