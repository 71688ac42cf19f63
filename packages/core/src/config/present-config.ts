import { MASK, maskAddress } from '../logging/redaction.js';
import { nest, type Resolved } from './config.js';
import { settingAt, type Setting } from './settings.js';

/** As printed by `gateway config`. Secrets are masked unless `showSecrets` is set. */
export function presentConfig(
  { config, rows }: Resolved,
  { showSecrets = false } = {},
): Record<string, unknown> {
  const shown = Object.entries(rows).filter(([, row]) => row.withdrawn === undefined);
  return nest(
    new Map(shown.map(([key, row]) => [key, presented(row, settingAt(config, key), showSecrets)])),
  );
}

/** Secrets are masked unless `showSecrets` is set. */
export function presentOrigins({ config, origins, rows }: Resolved, { showSecrets = false } = {}) {
  const line = (key: string, origin: string) => ({
    value: presented(rows[key]!, settingAt(config, key), showSecrets) ?? null,
    origin,
  });
  return Object.fromEntries(Array.from(origins, ([key, origin]) => [key, line(key, origin)]));
}

function presented(row: Setting, value: unknown, showSecrets: boolean): unknown {
  if (showSecrets || value === undefined || (Array.isArray(value) && value.length === 0))
    return value;
  if (row.secret) return MASK;
  return typeof value === 'string' ? maskAddress(value) : value;
}
