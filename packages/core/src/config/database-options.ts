import { didYouMean } from '../errors/suggest.js';
import { own } from '../json/json-value.js';

const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
type SslMode = (typeof SSL_MODES)[number];

export type LibpqOptions = Readonly<ReturnType<typeof optionsOf>>;

/** Completes a sentence that begins with `database.options`. */
interface OptionsMistake {
  readonly wrong: string;
  readonly hint?: string;
}

const CHOICES: Readonly<Record<string, readonly string[]>> = {
  sslmode: SSL_MODES,
  ssl: ['true'],
  sslnegotiation: ['postgres', 'direct'],
  channel_binding: ['disable', 'prefer'],
  gssencmode: ['disable', 'prefer'],
  target_session_attrs: ['any'],
  client_encoding: ['UTF8', 'utf8', 'auto'],
  keepalives: ['0', '1'],
  uselibpqcompat: ['true'],
};
const SECONDS = ['connect_timeout', 'keepalives_idle'];
const TEXTS = [
  'application_name',
  'fallback_application_name',
  'options',
  'sslrootcert',
  'sslcert',
  'sslkey',
];
const KNOWN = [...Object.keys(CHOICES), ...SECONDS, ...TEXTS];
const OTHER_SETTINGS: Readonly<Record<string, string>> = {
  host: 'database.host',
  port: 'database.port',
  user: 'database.username',
  password: 'database.password',
  dbname: 'database.database',
};
const MOST_SECONDS = 2_147_483;

/** Parses a query string as libpq does: a plus sign is not decoded as a space. */
export function parseDatabaseOptions(
  text: string,
): { readonly options: LibpqOptions } | OptionsMistake {
  const given = new Map<string, string>();
  for (const part of text.replace(/^\?/, '').split('&')) {
    if (part === '') continue;
    const at = part.indexOf('=');
    if (at <= 0)
      return {
        wrong: `must be a list of <name>=<value> joined by "&"; ${JSON.stringify(part)} is not`,
      };
    try {
      const [name, value] = [part.slice(0, at), part.slice(at + 1)].map(decodeURIComponent) as [
        string,
        string,
      ];
      given.set(name, value);
      const wrong = wrongWith(name, value);
      if (wrong) return wrong;
    } catch {
      return {
        wrong: `holds a "%" in ${JSON.stringify(part.slice(0, at))} without two hexadecimal digits after it; write it as %25`,
      };
    }
  }
  const wrong = conflictIn(given);
  return wrong === undefined ? { options: optionsOf(given) } : { wrong };
}

function wrongWith(name: string, value: string): OptionsMistake | undefined {
  const setting = own(OTHER_SETTINGS, name);
  if (setting) return { wrong: `names ${name}, which is the setting ${setting}` };
  if (!KNOWN.includes(name)) {
    const session = /_timeout$|^search_path$/.test(name)
      ? `; for the session it is options=-c ${name}=<value>`
      : '';
    const hint = session || didYouMean(name, KNOWN);
    return {
      wrong: `names ${JSON.stringify(name)}, which is not an option (known: ${KNOWN.join(', ')})`,
      hint,
    };
  }
  const choices = own(CHOICES, name);
  if (choices && !choices.includes(value)) {
    return {
      wrong: `has ${name} of ${JSON.stringify(value)}; it must be ${choices.length > 1 ? 'one of ' : ''}${choices.join(', ')}`,
      hint:
        name === 'target_session_attrs'
          ? '; database.host must be an address that follows the primary'
          : didYouMean(value, choices),
    };
  }
  if (SECONDS.includes(name) && !(/^\d{1,7}$/.test(value) && Number(value) <= MOST_SECONDS)) {
    return {
      wrong: `has ${name} of ${JSON.stringify(value)}; it must be whole seconds, at most ${MOST_SECONDS}`,
    };
  }
  return undefined;
}

function conflictIn(given: ReadonlyMap<string, string>): string | undefined {
  const mode = modeOf(given);
  const file = ['sslrootcert', 'sslcert', 'sslkey'].find((name) => given.get(name));
  if (file && !given.has('sslmode') && !given.has('ssl'))
    return `names ${file} without sslmode, so TLS would not be used; add sslmode=verify-full`;
  if (given.has('ssl') && given.has('sslmode')) return 'has both ssl and sslmode; omit ssl';
  if (!given.get('sslcert') !== !given.get('sslkey'))
    return 'must have both sslcert and sslkey, or neither';
  if (mode === 'verify-ca' && !given.get('sslrootcert')) {
    return 'asks for sslmode=verify-ca without sslrootcert, which would accept any certificate; set sslrootcert, or sslmode=verify-full';
  }
  if (given.get('sslrootcert') === 'system' && mode !== 'verify-full') {
    return `asks for sslmode=${mode} with sslrootcert=system, which would accept a certificate of any host; set sslmode=verify-full`;
  }
  if (
    given.get('sslnegotiation') === 'direct' &&
    !['require', 'verify-ca', 'verify-full'].includes(mode)
  ) {
    return `asks for sslnegotiation=direct with sslmode=${mode}; it needs at least sslmode=require`;
  }
  return undefined;
}

function modeOf(given: ReadonlyMap<string, string>): SslMode {
  return (
    (given.get('sslmode') as SslMode | undefined) ?? (given.has('ssl') ? 'require' : 'disable')
  );
}

/** https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS */
function optionsOf(given: ReadonlyMap<string, string>) {
  const text = (name: string) => given.get(name) || undefined;
  const seconds = (name: string) => (given.has(name) ? Number(given.get(name)) : undefined);
  return {
    sslmode: modeOf(given),
    /** A PEM file, or `system` for the default certificate authorities. */
    sslrootcert: text('sslrootcert'),
    sslcert: text('sslcert'),
    sslkey: text('sslkey'),
    /** TLS starts immediately. Requires Postgres 17 or later. */
    direct: given.get('sslnegotiation') === 'direct',
    channelBinding: given.get('channel_binding') === 'prefer',
    applicationName: text('application_name'),
    fallbackApplicationName: text('fallback_application_name'),
    /** Such as `-c search_path=x`. */
    session: text('options'),
    /** 0 means no limit. */
    connectTimeoutSeconds: seconds('connect_timeout'),
    keepAlive: given.get('keepalives') !== '0',
    keepAliveIdleSeconds: seconds('keepalives_idle'),
  };
}
