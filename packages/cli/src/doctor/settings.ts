import type { Resolved } from '@gateway/core/config';
import type { CheckedConfig } from '../config/check.js';
import { isGatewayError } from '@gateway/core/errors';
import { readLicence } from '@gateway/core/plugins';
import { isMissed } from '@gateway/core/plugins';
import { sealer } from '@gateway/core/crypto';
import type { Config } from '@gateway/core/config';
import { failed, failedBy, ok, skipped, warning, type Finding } from './finding.js';

/** Settings that have a line of their own. */
const ELSEWHERE = ['encryption_key', 'license_key', 'license_public_key'];

/**
 * The settings as `gateway config check` reads them.
 *
 * @param isAll whether nothing else can be looked at, so that everything wrong is told here
 */
export function checkSettings({ problems, warnings, given, file }: CheckedConfig, isAll: boolean): Finding {
  const told = (lines: CheckedConfig['problems']) =>
    lines.filter(({ key }) => isAll || !ELSEWHERE.includes(key)).map(({ sentence }) => sentence);
  const wrong = told(problems);
  const doubtful = told(warnings);
  const fix = 'correct each where it is set; `gateway config check` lists them one by one';
  if (wrong.length > 0) return failed('settings', wrong.join('; '), fix);
  if (doubtful.length > 0) return warning('settings', doubtful.join('; '), fix);
  return ok(
    'settings',
    `${given} ${given === 1 ? 'setting' : 'settings'} given, ${file ? `with those of ${file}` : 'no configuration file'}`,
  );
}

export function checkEncryptionKey({ encryption_key: key }: Config): Finding {
  try {
    sealer(key);
    return ok('encryption key', '32 bytes');
  } catch (error) {
    return failedBy('encryption key', error);
  }
}

export function checkLicence({ license_key: token, license_public_key: publicKey }: Config): Finding {
  const { kind, organisation, expiresAt, problem } = readLicence({ token, publicKey });
  if (problem) return warning('licence', problem.message, problem.fix);
  if (kind === 'community') return ok('licence', 'community');
  return ok('licence', `${organisation}, until ${expiresAt?.toISOString() ?? 'for ever'}`);
}

/** One line for each plugin, as they would become active; nothing of a plugin is imported. */
export function checkPlugins({ plugins }: CheckedConfig, { config }: Resolved): Finding[] {
  return plugins.map((plugin) => {
    const { kind, name, version, state, reason = '', fix = '' } = plugin;
    const check = `plugin ${name}`;
    if (state === 'active') return ok(check, `${kind} ${version}, becomes active`);
    const sentence = `${kind}, inactive: ${reason}`;
    if (!isMissed(plugin, config)) return skipped(check, sentence);
    return config.plugins.strict ? failed(check, sentence, fix) : warning(check, sentence, fix);
  });
}

/** Whether the error of reading the settings is one that lists them, and not a wrong use of the command. */
export function isAboutSettings(error: unknown): boolean {
  return (['invalid_settings', 'withdrawn', 'config_unreadable', 'config_not_json'] as const).some((code) => isGatewayError(error, code));
}
