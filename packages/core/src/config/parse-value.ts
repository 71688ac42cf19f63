import { BlockList } from 'node:net';
import { maskAddress } from '../logging/redaction.js';
import type { Setting } from './settings.js';
import { didYouMean } from '../errors/suggest.js';

/** A mistake is the part of a sentence between the key and the origin. */
type ParsedSetting =
  | { readonly value: number | boolean | string | readonly string[] }
  | { readonly wrong: string; readonly hint?: string };

/**
 * @param fromText whether the value comes from an environment variable or a flag, which are always
 *   text, rather than from the file
 */
export function parseSetting(setting: Setting, given: unknown, fromText: boolean): ParsedSetting {
  const shown = setting.secret ? 'what was given' : shownText(given);
  switch (setting.type) {
    case 'integer':
    case 'number':
      return parseNumber(setting, given, fromText, shown);
    case 'boolean':
      return parseBoolean(given, fromText, shown);
    case 'string':
      if (typeof given !== 'string') return { wrong: `must be a string, not ${shown}` };
      return parseText(setting, given);
    case 'list':
      return parseList(setting, given, shown);
  }
}

function parseNumber(
  setting: Setting,
  given: unknown,
  fromText: boolean,
  shown: string,
): ParsedSetting {
  const value =
    fromText &&
    typeof given === 'string' &&
    /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(given.trim())
      ? Number(given)
      : given;
  const integer = setting.type === 'integer';
  if (
    typeof value !== 'number' ||
    !(integer ? Number.isSafeInteger(value) : Number.isFinite(value))
  ) {
    return { wrong: `must be ${integer ? 'an integer' : 'a number'}, not ${shown}` };
  }
  if (setting.min !== undefined && value < setting.min)
    return { wrong: `must be at least ${setting.min}, not ${shown}` };
  if (setting.max !== undefined && value > setting.max)
    return { wrong: `must be at most ${setting.max}, not ${shown}` };
  return { value };
}

function parseBoolean(given: unknown, fromText: boolean, shown: string): ParsedSetting {
  if (typeof given === 'boolean') return { value: given };
  const text = fromText && typeof given === 'string' ? given.trim().toLowerCase() : '';
  if (['true', '1', 'yes', 'on'].includes(text)) return { value: true };
  if (['false', '0', 'no', 'off'].includes(text)) return { value: false };
  return { wrong: `must be true or false, not ${shown}` };
}

function parseList(setting: Setting, given: unknown, shown: string): ParsedSetting {
  const parts: unknown[] = Array.isArray(given) ? given : [given];
  if (!parts.every((part) => typeof part === 'string'))
    return { wrong: `must be a list of strings, not ${shown}` };
  const items = parts.flatMap((part) => part.split(',').map((item) => item.trim()));
  const distinct = [...new Set(items)].filter(Boolean);
  const values: string[] = [];
  for (const item of distinct) {
    const parsed = parseText(setting, item);
    if ('wrong' in parsed) return parsed;
    values.push(parsed.value);
  }
  return { value: [...new Set(values)] };
}

type ParsedText = Exclude<ParsedSetting, { readonly value: unknown }> | { readonly value: string };

function parseText(setting: Setting, given: string): ParsedText {
  if (setting.lowerCase) return { value: given.toLowerCase() };
  if (!setting.options)
    return (
      checkFormat(setting, given) ?? { value: setting.format === 'host' ? bare(given) : given }
    );
  const option = setting.options.find((it) => it.toLowerCase() === given.toLowerCase());
  if (option !== undefined) return { value: option };
  const hint = didYouMean(given, setting.options);
  const known = setting.options.join(', ') || 'none';
  if (setting.noun)
    return {
      wrong: `names ${shownText(given)}, which is not a ${setting.noun} (known: ${known})`,
      hint,
    };
  return {
    wrong: `must be ${setting.options.length > 1 ? 'one of ' : ''}${known}, not ${shownText(given)}`,
    hint,
  };
}

interface Format {
  /** For JSON Schema validators. It may accept values that `isValid` rejects. */
  readonly pattern: string;
  readonly isValid?: (text: string) => boolean;
  readonly like: readonly [one: string, several: string, example: string];
}

export const formats: Readonly<Record<NonNullable<Setting['format']>, Format>> = {
  cidr: {
    pattern: '^[0-9a-fA-F:.]+/[0-9]{1,3}$',
    isValid: isCidr,
    like: ['a network', 'networks', '10.0.0.0/8'],
  },
  url: {
    pattern: '^[hH][tT][tT][pP][sS]?://[^\\s/]',
    isValid: URL.canParse,
    like: ['a URL', 'URLs', 'https://example.com/path'],
  },
  // A name, an IP address or the directory of a Unix socket.
  host: {
    pattern: '^(/\\S*|\\[?[0-9a-fA-F:.]+(%\\w+)?\\]?|[^\\s:/@?#,;\\[\\]]+)$',
    like: ['a host', 'hosts', 'db.example.com'],
  },
  login: {
    pattern: '^[^@,]*$',
    like: ['an address without a login', 'addresses without logins', 'example.com'],
  },
  // host:port, [::1]:port, or :port for every local address.
  address: {
    pattern: '^(\\[[0-9a-fA-F:.]+\\]|[^\\s:/@\\[\\]]*):[0-9]{1,5}$',
    isValid: hasPort,
    like: ['an address', 'addresses', 'example.com:6379'],
  },
  target: {
    pattern: '^([hH][tT][tT][pP][sS]?://)?(\\[[0-9a-fA-F:.]+\\]|[^\\s:/@\\[\\]]+):[0-9]{1,5}/?$',
    isValid: hasPort,
    like: ['an address', 'addresses', 'collector:4317'],
  },
  // https://develop.sentry.dev/sdk/overview/#parsing-the-dsn
  dsn: {
    pattern:
      '^https?://\\w+(:\\w*)?@(\\[[0-9a-fA-F:.]+\\]|[\\w.-]+)(:[0-9]+)?/([\\w./-]+/)?[0-9]+$',
    like: ['a DSN', 'DSNs', 'https://<key>@<host>/<project>'],
  },
  prefix: {
    pattern: '^(/[A-Za-z0-9._~-]+)*$',
    like: ['a path', 'paths', '/gateway, without a slash at the end'],
  },
  // The value becomes part of a header, so the pattern accepts only 'self' and host sources:
  // https://www.w3.org/TR/CSP3/#directive-frame-ancestors
  ancestor: {
    pattern: "^('self'|https?://(\\*\\.)?[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?)$",
    like: ['an origin', 'origins', 'https://app.example.com'],
  },
  // https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
  archive: {
    pattern: '^(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\\w.=/-]*)?|/.*)$',
    like: ['a bucket or folder', 'buckets or folders', 's3://bucket/prefix or /srv/archive'],
  },
  day: {
    pattern: '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$',
    like: ['a day', 'days', '2026-01-31'],
  },
  id: {
    pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
    like: ['an id', 'ids', '019ab3c4-5d6e-8f70-9123-456789abcdef'],
  },
  email: {
    pattern: '^([^<]*<[^\\s@<>]+@[^\\s@<>]+>|[^\\s@<>]+@[^\\s@<>]+)$',
    like: ['an email address', 'email addresses', 'gateway@example.com'],
  },
};

function checkFormat(
  { format, secret, type, oneHost }: Setting,
  given: string,
): ParsedText | undefined {
  if (format === undefined) return undefined;
  const { pattern, isValid, like } = formats[format];
  if (new RegExp(pattern).test(given) && (isValid?.(given) ?? true)) return undefined;
  const [one, several, example] = like;
  if (format === 'host' && given.includes('://'))
    return { wrong: `must be ${one} such as ${example}, not a URL` };
  const shown = secret ? 'what was given' : shownText(given);
  if (oneHost && /[,;\s]/.test(given.trim()))
    return { wrong: `must be one host, not the list ${shown}`, hint: `; ${oneHost}` };
  return {
    wrong: `must ${type === 'list' ? `hold ${several}` : `be ${one}`} such as ${example}, not ${shown}`,
  };
}

/** Masks credentials in any setting, because users paste URLs into the wrong one. */
function shownText(given: unknown): string {
  return maskAddress(JSON.stringify(given) ?? 'nothing');
}

function hasPort(text: string): boolean {
  return Number(/(\d+)\/?$/.exec(text)?.[1]) <= 65_535;
}

/** The host may be an IPv6 address in brackets. */
export function hostAndPort(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(':');
  return {
    host: bare(address.slice(0, at)),
    port: Number(address.slice(at + 1)),
  };
}

function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

function isCidr(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  if (rest.length > 0 || !/^\d{1,3}$/.test(bits)) return false;
  try {
    new BlockList().addSubnet(address, Number(bits), address.includes(':') ? 'ipv6' : 'ipv4');
    return true;
  } catch {
    return false;
  }
}
