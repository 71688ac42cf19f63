import { composed, listed, row, type Problem } from './error-row.js';

/** Settings, secrets and licences. */
// prettier-ignore
export const settingErrors = {
  invalid_settings: row(500,
    ({ problems }: { problems: readonly Problem[] }) =>
      problems.length === 1 ? problems[0]!.sentence : `${problems.length} settings are wrong:\n${listed(problems)}`,
    'correct each where it is set; `gateway config --help` lists the places that settings are read from'),
  wrong_flags: row(500,
    ({ problems }: { problems: readonly Problem[] }) =>
      problems.length === 1 ? problems[0]!.sentence : `${problems.length} flags are wrong:\n${listed(problems)}`,
    'run the command with --help to see its flags', 2),
  withdrawn: row(500, '{form} is no longer valid', '{instead}', 2),
  wrong_use: composed(400, 2),
  config_unreadable: row(500, 'the configuration file {path} cannot be read: {reason}',
    'name a readable file with --config, or omit the flag to use ./gateway.json if there is one'),
  config_not_json: row(500, 'the configuration file {path} is not a JSON object: {reason}', 'correct the JSON in {path}'),
  encryption_key_missing: row(500, 'no encryption key is set; secrets of endpoints and sources are stored encrypted with it',
    'generate one with `openssl rand -base64 32` and set encryption_key in the file or GATEWAY_ENCRYPTION_KEY, the same for every process'),
  encryption_key_invalid: row(500,
    ({ bytes }: { bytes?: number }) =>
      bytes === undefined ? 'encryption_key is not base64' : `encryption_key holds ${bytes} bytes; it must be exactly 32, in base64`,
    'generate one with `openssl rand -base64 32` and set encryption_key in the file or GATEWAY_ENCRYPTION_KEY'),
  not_unsealable: row(500, 'a stored secret cannot be decrypted with this encryption key',
    'set encryption_key / GATEWAY_ENCRYPTION_KEY to the key that it was encrypted with'),
  reseal_refused: row(500,
    ({ problems }: { problems: readonly { readonly sentence: string }[] }) =>
      `nothing was changed; the current encryption key does not decrypt:\n${listed(problems)}`,
    'set encryption_key / GATEWAY_ENCRYPTION_KEY to the key that they were encrypted with; replace or delete over the management API what no key decrypts any more'),
  agents_running: row(409,
    ({ names }: { names: readonly string[] }) =>
      `${names.length === 1 ? 'an agent is' : `${names.length} agents are`} running (${names.join(', ')}) and could not decrypt the new secrets; nothing was changed`,
    'stop the agents, run this again, and start them with the new key; until then deliveries wait in Postgres and messages with their brokers'),
  licence_invalid: row(403, 'the licence is not valid: {reason}; the community licence applies',
    ({ fix = 'set license_key / GATEWAY_LICENSE_KEY to the token as you received it, or remove it' }: { fix?: string }) => fix),
  licence_expired: row(403, 'the licence of {organisation} expired at {expiredAt}; the community licence applies',
    'renew it and set license_key / GATEWAY_LICENSE_KEY to the new token; if that time is in the future, correct the clock of this machine, which says {now}'),
  licence_not_yet: row(403,
    'the licence of {organisation} was issued at {issuedAt}, but the clock of this machine says {now}; the community licence applies',
    'correct the clock of this machine and synchronise it with NTP'),
  licence_key_file: row(500, 'the key file {path} {reason}',
    ({ fix = 'name the file with the private key of the distribution; create one with `gateway license issue --generate-key <file>`' }: { fix?: string }) => fix),
} as const;
