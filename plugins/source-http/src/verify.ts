import { createHmac, hash as digestOf } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { PushRequest } from '@gateway/plugin';
import type { Verifier } from './connection.js';
import { queryOf } from './location.js';
import { headerOf, providerOf, type HmacScheme } from './providers.js';
import { isSame, keyOf } from './secrets.js';

/** Undefined if the source verifies signatures, null if it verifies nothing. */
export function credentialOf(
  { type, api_key: key }: Verifier,
  headers: IncomingHttpHeaders,
): string | null | undefined {
  if (type === 'noop') return null;
  if (type === 'basic_auth') return `basic ${headers.authorization}`;
  return type === 'api_key' ? `key ${textOf(headers, key?.header_name ?? '')}` : undefined;
}

/** A provider that rotates its secret sends two. */
const SIGNATURES_MAX = 10;

const ALGORITHM = /^(sha-?(1|256|512)|v\d)=/i;

/** Limits replays. This is the default in the providers' libraries. */
const TOLERANCE_SECONDS = 300;

const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;

type SignedRequest = Pick<PushRequest, 'headers' | 'body' | 'url'>;

/** The end of a sentence, or undefined if the request is from the expected sender. */
export function whyUnverified(
  verifier: Verifier,
  request: SignedRequest,
  nowMs = Date.now(),
): string | undefined {
  const { type, secret = '', basic_auth: basic, api_key: key, hmac } = verifier;
  switch (type) {
    case 'noop':
      return undefined;
    case 'basic_auth': {
      const [, pair] =
        /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(request.headers.authorization ?? '') ?? [];
      if (pair === undefined) return 'it has no username and password';
      const isRight = isSame(
        Buffer.from(pair, 'base64'),
        Buffer.from(`${basic?.username}:${basic?.password}`),
      );
      return isRight ? undefined : 'its username or password is wrong';
    }
    case 'api_key': {
      const name = key?.header_name ?? '';
      const given = textOf(request.headers, name);
      if (given === undefined) return `it has no header ${name}`;
      // Node decodes headers as Latin-1, so this restores the bytes sent.
      return isSame(Buffer.from(given, 'latin1'), Buffer.from(key?.header_value ?? ''))
        ? undefined
        : `its header ${name} is wrong`;
    }
    case 'hmac': {
      const { header = '', hash = 'SHA256', encoding = 'hex' } = hmac ?? {};
      return whyUnsigned(
        { header: header.toLowerCase(), hash, encoding, signed: ['body'] },
        Buffer.from(hmac?.secret ?? ''),
        request,
        nowMs,
      );
    }
    default: {
      const { scheme } = providerOf(type)!;
      const bytes = scheme.isKeyBase64 ? keyOf(secret) : Buffer.from(secret);
      return bytes
        ? whyUnsigned(scheme, bytes, request, nowMs)
        : 'the secret of the source is not base64 of at least 16 bytes';
    }
  }
}

function whyUnsigned(
  scheme: HmacScheme,
  key: Buffer,
  { headers, body, url }: SignedRequest,
  nowMs: number,
): string | undefined {
  const given = textOf(headers, scheme.header);
  if (given === undefined) return `it has no header ${scheme.header}`;
  const { list, timestamp } = scheme;
  // Headers often contain spaces, as in `sha256= 4f…`, or several signatures.
  const members = list
    ? given.split(list.separator).map((it) => it.trim())
    : given.split(/[\s,]+/).map((it) => it.replace(ALGORITHM, ''));
  const marked = (mark: string) =>
    members.flatMap((it) => (it.startsWith(mark) ? [it.slice(mark.length)] : []));
  const signatures = (list ? marked(list.mark) : members.filter((it) => it !== '')).slice(
    0,
    SIGNATURES_MAX,
  );

  const parts: Record<Exclude<HmacScheme['signed'][number], 'body'>, string | undefined> = {
    id: undefined,
    timestamp: undefined,
    url,
    form: undefined,
  };
  if (timestamp) {
    const at =
      timestamp.header === undefined
        ? marked(timestamp.mark ?? '')[0]
        : textOf(headers, timestamp.header);
    if (at === undefined || !/^\d{1,12}$/.test(at)) return 'it has no signing time';
    if (Math.abs(nowMs / 1000 - Number(at)) > TOLERANCE_SECONDS)
      return `it was signed more than ${TOLERANCE_SECONDS} seconds ago, or the clocks differ`;
    parts.timestamp = at;
  }
  if (scheme.id !== undefined) {
    parts.id = textOf(headers, scheme.id);
    if (parts.id === undefined) return `it has no header ${scheme.id}`;
  }

  if (scheme.signed.includes('form')) {
    if (FORM.test(headers['content-type'] ?? '')) parts.form = sortedFields(body);
    else if (queryOf(url).get('bodySHA256')?.toLowerCase() !== digestOf('sha256', body))
      return 'its body is not the one whose SHA-256 its URL has in bodySHA256';
  }

  const hmac = createHmac(scheme.hash.toLowerCase(), key);
  const { joint = '.', version = '' } = scheme;
  for (const [at, part] of scheme.signed.entries()) {
    hmac.update(at > 0 ? joint : version && version + joint);
    hmac.update(part === 'body' ? body : (parts[part] ?? ''));
  }
  // Compared as text: decoding would ignore characters after a signature.
  const wanted = Buffer.from(hmac.digest(scheme.encoding));
  const isSigned = signatures.some((it) =>
    isSame(Buffer.from(scheme.encoding === 'hex' ? it.toLowerCase() : it), wanted),
  );
  return isSigned ? undefined : `its signature in ${scheme.header} is wrong`;
}

function textOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const found = headerOf(headers, name.toLowerCase());
  return typeof found === 'string' ? found : undefined;
}

/** Sorted by name and value, without repetitions or separators. */
function sortedFields(body: Uint8Array): string {
  const fields = new Map<string, Set<string>>();
  for (const [name, value] of new URLSearchParams(Buffer.from(body).toString()))
    fields.set(name, (fields.get(name) ?? new Set()).add(value));
  return [...fields.keys()]
    .sort()
    .flatMap((name) => [...fields.get(name)!].sort().map((value) => name + value))
    .join('');
}
