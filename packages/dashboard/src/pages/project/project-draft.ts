import type { ChangedProject, Project } from '@gateway/client';
import { typedNumber } from '../../format/number.js';

/** The form's values of unset fields, by their paths in the configuration. */
const UNSET = {
  'strategy.type': 'exponential',
  'strategy.retry_count': 10,
  'strategy.duration': 10,
  'strategy.max_seconds': 7200,
  'signature.header': '',
  'signature.hash': 'SHA256',
  'signature.encoding': 'hex',
  'ratelimit.count': 100,
  'ratelimit.duration': 1,
  'circuit_breaker.failure_threshold': 70,
  'circuit_breaker.minimum_request_count': 10,
  'circuit_breaker.observability_window': 5,
  'circuit_breaker.error_timeout': 30,
  // Empty means the instance's retention.
  'retention.days': null,
  // Empty means never.
  disable_after_days: null,
  unknown_event_types: 'accept',
};

export type ConfigPath = keyof typeof UNSET;

/** Numbers are kept as typed. */
export type ProjectDraft = Readonly<
  Record<ConfigPath | 'name' | 'limitKind' | 'breakerKind', string>
>;

export function draftOf({ name, config }: Project): ProjectDraft {
  type Stored = Readonly<Record<string, unknown>> | undefined;
  const fields = Object.entries(UNSET).map(([path, unset]) => {
    const [group = '', field] = path.split('.');
    const stored = (config as Stored)?.[group];
    const value = field ? (stored as Stored)?.[field] : stored;
    return [path, String((value as string | number | null | undefined) ?? unset ?? '')];
  });
  return {
    ...(Object.fromEntries(fields) as Record<ConfigPath, string>),
    name,
    limitKind: config.ratelimit ? 'own' : 'none',
    breakerKind: config.circuit_breaker ? 'own' : 'instance',
  };
}

/** The whole configuration of a project, for the API. */
export function configOf(draft: ProjectDraft): NonNullable<ChangedProject['config']> {
  const { limitKind, breakerKind, disable_after_days: disable } = draft;
  const group = (name: string) => {
    const paths = (Object.keys(UNSET) as ConfigPath[]).filter((path) =>
      path.startsWith(`${name}.`),
    );
    const value = (path: ConfigPath) =>
      typeof UNSET[path] === 'string' ? draft[path].trim() : typedNumber(draft[path]);
    return Object.fromEntries(paths.map((path) => [path.slice(name.length + 1), value(path)]));
  };
  const { max_seconds, ...strategy } = group('strategy');
  return {
    strategy: strategy['type'] === 'exponential' ? { ...strategy, max_seconds } : strategy,
    signature: group('signature'),
    ratelimit: limitKind === 'none' ? null : group('ratelimit'),
    circuit_breaker: breakerKind === 'instance' ? null : group('circuit_breaker'),
    retention: draft['retention.days'].trim() === '' ? null : group('retention'),
    disable_after_days: disable.trim() === '' ? null : typedNumber(disable),
    unknown_event_types: draft.unknown_event_types,
  } as ReturnType<typeof configOf>;
}
