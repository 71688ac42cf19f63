import { sealer } from '@gateway/core/crypto';
import { isMissed } from '@gateway/core/plugins';
import { licenceOf } from '../app/installation.js';
import type { CheckedConfig } from '../config/check.js';
import { failed, ok, skipped, warning, type Check, type Context, type Result } from './finding.js';

/** Settings that have a line of their own. */
const ELSEWHERE = ['encryption_key', 'license_key', 'license_public_key'];

/**
 * The settings as `gateway config check` reads them.
 *
 * @param isAll whether nothing else can be looked at, so that everything wrong is told here
 */
export function checkSettings({ problems, warnings, given, file }: CheckedConfig, isAll: boolean): Result {
  const told = (lines: CheckedConfig['problems']) =>
    lines.filter(({ key }) => isAll || !ELSEWHERE.includes(key)).map(({ sentence }) => sentence);
  const [wrong, doubtful] = [told(problems), told(warnings)];
  const fix = 'correct each where it is set; `gateway config check` lists them one by one';
  if (wrong.length > 0) return failed(wrong.join('; '), fix);
  if (doubtful.length > 0) return warning(doubtful.join('; '), fix);
  return ok(`${given} ${given === 1 ? 'setting' : 'settings'} given, ${file ? `with those of ${file}` : 'no configuration file'}`);
}

/** Throws `encryption_key_missing` or `encryption_key_invalid`. */
export function checkEncryptionKey({ config }: Context): Result {
  sealer(config.encryption_key);
  return ok('32 bytes');
}

/** Returns a warning when the licence has a problem; otherwise who has it and until when. */
export function checkLicence({ config }: Context): Result {
  const { kind, organisation, expiresAt, problem } = licenceOf(config);
  if (problem) return warning(problem.message, problem.fix);
  return ok(kind === 'community' ? kind : `${organisation}, until ${expiresAt?.toISOString() ?? 'for ever'}`);
}

/** A line for each plugin, as they would become active; nothing of a plugin is imported. */
export function checkPlugins({ checked: { plugins }, config }: Context): Check[] {
  return plugins.map((plugin) => {
    const { kind, name, version, state, reason = '', fix = '' } = plugin;
    const sentence = `${kind}, inactive: ${reason}`;
    const missed = config.plugins.strict ? failed : warning;
    const found =
      state === 'active' ? ok(`${kind} ${version}, becomes active`) : isMissed(plugin, config) ? missed(sentence, fix) : skipped(sentence);
    return [`plugin ${name}`, () => found];
  });
}
