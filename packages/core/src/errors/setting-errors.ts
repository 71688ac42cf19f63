import { composed, listed, row, type Problem } from './error-row.js';

/** Settings, secrets and licences. */
export const settingErrors = {
  invalid_settings: row<{ problems: readonly Problem[] }>({
    message: ({ problems }) =>
      problems.length === 1 ? problems[0]!.sentence : `${problems.length} settings are wrong:\n${listed(problems)}`,
    fix: () => 'correct each where it is set; `gateway config --help` lists the places that settings are read from',
  }),
  wrong_flags: row<{ problems: readonly Problem[] }>({
    exit: 2,
    message: ({ problems }) => (problems.length === 1 ? problems[0]!.sentence : `${problems.length} flags are wrong:\n${listed(problems)}`),
    fix: () => 'run the command with --help to see its flags',
  }),
  withdrawn: row<{ form: string; instead: string }>({
    exit: 2,
    message: ({ form }) => `${form} is no longer valid`,
    fix: ({ instead }) => instead,
  }),
  wrong_use: composed({ exit: 2, http: 400 }),
  config_unreadable: row<{ path: string; reason: string }>({
    message: ({ path, reason }) => `the configuration file ${path} cannot be read: ${reason}`,
    fix: () => 'name a readable file with --config, or omit the flag to use ./gateway.json if there is one',
  }),
  config_not_json: row<{ path: string; reason: string }>({
    message: ({ path, reason }) => `the configuration file ${path} is not a JSON object: ${reason}`,
    fix: ({ path }) => `correct the JSON in ${path}`,
  }),
  encryption_key_missing: row({
    message: () => 'no encryption key is set; secrets of endpoints and sources are stored encrypted with it',
    fix: () =>
      'generate one with `openssl rand -base64 32` and set encryption_key in the file or GATEWAY_ENCRYPTION_KEY, the same for every process',
  }),
  encryption_key_invalid: row<{ bytes?: number }>({
    message: ({ bytes }) =>
      bytes === undefined ? 'encryption_key is not base64' : `encryption_key holds ${bytes} bytes; it must be exactly 32, in base64`,
    fix: () => 'generate one with `openssl rand -base64 32` and set encryption_key in the file or GATEWAY_ENCRYPTION_KEY',
  }),
  not_unsealable: row({
    message: () => 'a stored secret cannot be decrypted with this encryption key',
    fix: () => 'set encryption_key / GATEWAY_ENCRYPTION_KEY to the key that it was encrypted with',
  }),
  reseal_refused: row<{ problems: readonly { readonly sentence: string }[] }>({
    message: ({ problems }) => `nothing was changed; the current encryption key does not decrypt:\n${listed(problems)}`,
    fix: () =>
      'set encryption_key / GATEWAY_ENCRYPTION_KEY to the key that they were encrypted with; replace or delete over the management API what no key decrypts any more',
  }),
  agents_running: row<{ names: readonly string[] }>({
    http: 409,
    message: ({ names }) =>
      `${names.length === 1 ? 'an agent is' : `${names.length} agents are`} running (${names.join(', ')}) and could not decrypt the new secrets; nothing was changed`,
    fix: () =>
      'stop the agents, run this again, and start them with the new key; until then deliveries wait in Postgres and messages with their brokers',
  }),
  licence_invalid: row<{ reason: string; fix?: string }>({
    http: 403,
    message: ({ reason }) => `the licence is not valid: ${reason}; the community licence applies`,
    fix: ({ fix }) => fix ?? 'set license_key / GATEWAY_LICENSE_KEY to the token as you received it, or remove it',
  }),
  licence_expired: row<{ expiredAt: string; organisation: string; now: string }>({
    http: 403,
    message: ({ expiredAt, organisation }) => `the licence of ${organisation} expired at ${expiredAt}; the community licence applies`,
    fix: ({ now }) =>
      `renew it and set license_key / GATEWAY_LICENSE_KEY to the new token; if that time is in the future, correct the clock of this machine, which says ${now}`,
  }),
  licence_not_yet: row<{ issuedAt: string; organisation: string; now: string }>({
    http: 403,
    message: ({ issuedAt, organisation, now }) =>
      `the licence of ${organisation} was issued at ${issuedAt}, but the clock of this machine says ${now}; the community licence applies`,
    fix: () => 'correct the clock of this machine and synchronise it with NTP',
  }),
  licence_key_file: row<{ path: string; reason: string; fix?: string }>({
    message: ({ path, reason }) => `the key file ${path} ${reason}`,
    fix: ({ fix }) =>
      fix ?? 'name the file with the private key of the distribution; create one with `gateway license issue --generate-key <file>`',
  }),
} as const;
