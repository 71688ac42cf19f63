import { sealer } from '@gateway/core/crypto';
import { importedPlugins, isMissed } from '@gateway/core/plugins';
import { openOneSecret } from '@gateway/store/config';
import { licenceOf } from '../app/installation.js';
import type { CheckedConfig } from '../config/check.js';
import {
  failed,
  ok,
  skipped,
  warning,
  type DoctorCheck,
  type DoctorContext,
  type DoctorResult,
} from './finding.js';

const ELSEWHERE = ['encryption_key', 'license_key', 'license_public_key'];

/**
 * The same problems as `gateway config check`.
 *
 * @param isAll true if no other check can run, so that the problems of other checks are included
 */
export function checkSettings(
  { problems, warnings, given, file }: CheckedConfig,
  isAll: boolean,
): DoctorResult {
  const told = (lines: CheckedConfig['problems']) =>
    lines.filter(({ key }) => isAll || !ELSEWHERE.includes(key)).map(({ sentence }) => sentence);
  const [wrong, doubtful] = [told(problems), told(warnings)];
  const fix = 'correct each setting where it is set; `gateway config check` lists the problems';
  if (wrong.length > 0) return failed(wrong.join('; '), fix);
  if (doubtful.length > 0) return warning(doubtful.join('; '), fix);
  return ok(
    `${given} ${given === 1 ? 'setting' : 'settings'} given, ${file ? `with those of ${file}` : 'no configuration file'}`,
  );
}

/**
 * Tries the key on a stored secret if there is one. Throws `encryption_key_missing`,
 * `encryption_key_invalid`, or `not_unsealable` if the secret was sealed with another key.
 */
export async function checkEncryptionKey({
  config,
  migrated,
}: DoctorContext): Promise<DoctorResult> {
  const seals = sealer(config.encryption_key);
  const database = await migrated.catch(() => undefined);
  if (!database) return ok('32 bytes; not tested with a stored secret, because of the database');
  return (await openOneSecret(database.pool, seals))
    ? ok('32 bytes; decrypts a stored secret')
    : ok('32 bytes; no secret is stored yet');
}

/** Without a problem, reports the licensee and the expiry. */
export function checkLicence({ config }: DoctorContext): DoctorResult {
  const { kind, organisation, expiresAt, problem } = licenceOf(config);
  if (problem) return warning(problem.message, problem.fix);
  return ok(
    kind === 'community'
      ? kind
      : `${organisation}, ${expiresAt ? `until ${expiresAt.toISOString()}` : 'without expiry'}`,
  );
}

/** One check per plugin. Those that would become active are imported, but not started. */
export async function checkPlugins({
  discovery,
  resolved,
  config,
}: DoctorContext): Promise<DoctorCheck[]> {
  const plugins = await importedPlugins({ discovery, resolved, licence: licenceOf(config) });
  return plugins.map((plugin) => {
    const { kind, name, version, state, reason = '', fix = '' } = plugin;
    const sentence = `${kind}, inactive: ${reason}`;
    const missed = config.plugins.strict ? failed : warning;
    const found =
      state === 'active'
        ? ok(`${kind} ${version}, becomes active`)
        : isMissed(plugin, config)
          ? missed(sentence, fix)
          : skipped(sentence);
    return [`plugin ${name}`, () => found];
  });
}
