import type { Sealer } from '@gateway/core/crypto';
import type { InvalidField } from '@gateway/core/errors';
import {
  isHeaderName,
  isHeaderValue,
  isReservedHeader,
  isTemplate,
  templateProblem,
} from '@gateway/core/events';
import { MASK } from '@gateway/core/logging';
import type { EndpointAuthentication, EndpointHeader } from '@gateway/store/config';
import { object, string, Type, type Static } from '../../api/vocabulary.js';

/** Agents keep them in memory, and each request carries them. */
const HEADERS_MAX = 10;
const VALUE_CHARS = 1_024;

export const GivenHeaders = Type.Array(
  object({
    name: Type.String({ minLength: 1, maxLength: 200 }),
    value: Type.Optional(
      Type.String({
        maxLength: VALUE_CHARS,
        'x-secret': true,
        description:
          'If omitted or masked, the stored value is kept. `{{ message.key }}` and other parts of the message are filled in at each request.',
      }),
    ),
  }),
  { maxItems: HEADERS_MAX },
);
export const ShownHeaders = Type.Array(object({ name: string(), value: string('Masked.') }));

type Given = Static<typeof GivenHeaders>;

export function headersView(stored: readonly EndpointHeader[] | null): EndpointHeader[] | null {
  return stored && stored.map(({ name }) => ({ name, value: MASK }));
}

const isKept = (value: string | undefined) => value === undefined || value === MASK;

/** After `headerProblems`. A list without headers is null. */
export function sealHeaders(
  given: Given | null,
  stored: readonly EndpointHeader[] | null,
  endpointId: string,
  { seal, bind }: Sealer,
): EndpointHeader[] | null {
  if (!given?.length) return null;
  const place = ['endpoints', endpointId, 'headers'] as const;
  return given.map(({ name: written, value }) => {
    const name = written.toLowerCase();
    const before = stored?.find((it) => it.name === name);
    if (isKept(value)) return { ...before!, value: bind(before!.value, place) };
    return { name, value: seal(value, place), ...(isTemplate(value) && { is_template: true }) };
  });
}

/** The builder of requests sets these, or another field does. */
const OTHERS = ['accept', 'traceparent', 'tracestate'];
const OF_SIGNATURES = ['content-digest', 'signature-input', 'signature'];

interface Headed {
  readonly url: string;
  readonly headers: Given | null;
  readonly authentication: Pick<EndpointAuthentication, 'type'> | null;
  readonly signature_prefix: string | null;
}

/**
 * Takes the endpoint as it will be. Stored values are not sent to another origin: a user who can change
 * the URL may not be entitled to know them.
 */
export function headerProblems(
  { url, headers, authentication, signature_prefix: prefix }: Headed,
  stored?: { readonly url: string; readonly headers: readonly EndpointHeader[] | null },
): InvalidField[] {
  const hasMoved =
    stored !== undefined && URL.canParse(url) && new URL(stored.url).origin !== new URL(url).origin;
  const { api_key: key } = (authentication ?? {}) as {
    readonly api_key?: { readonly header_name: string };
  };
  const signing = ['id', 'timestamp', 'signature'].map((part) => `${prefix ?? 'webhook'}-${part}`);
  const taken = new Set([...OTHERS, ...OF_SIGNATURES, ...signing]);
  const seen = new Set(key && [key.header_name.toLowerCase()]);
  return (headers ?? []).flatMap(({ name: written, value }, index) => {
    const name = written.toLowerCase();
    const problem = (part: string, sentence: string) => [
      { field: `headers.${index}.${part}`, sentence },
    ];
    if (!isHeaderName(name)) return problem('name', 'must be the name of a header');
    if (isReservedHeader(name) || taken.has(name))
      return problem('name', 'is a header that the gateway or the connection sets');
    if (name === 'authorization')
      return problem('name', 'is given as authentication: use that field');
    if (seen.has(name)) return problem('name', 'is there twice; a header has one value');
    seen.add(name);
    if (!isKept(value)) {
      const sentence = isHeaderValue(value)
        ? templateProblem(value)
        : 'holds characters that HTTP cannot carry';
      return sentence ? problem('value', sentence) : [];
    }
    if (!stored?.headers?.some((it) => it.name === name))
      return problem('value', 'is missing, and none is stored under this name');
    return hasMoved
      ? problem(
          'value',
          `is not sent to another origin than ${new URL(stored.url).origin}: url changes; give the value again, or null as headers to remove them`,
        )
      : [];
  });
}
