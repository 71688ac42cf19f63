import { typedNumber as number } from '../../format/number.js';
import type { ChangedProject, Project } from '@gateway/client';

/** Numbers are kept as typed. */
export type ProjectDraft = ReturnType<typeof draftOf>;

const text = (value: number | undefined, otherwise: string) =>
  value === undefined ? otherwise : String(value);

export function draftOf({ name, config }: Project) {
  const {
    strategy,
    signature,
    ratelimit,
    circuit_breaker: breaker,
    retention,
    disable_after_days: disable,
    unknown_event_types: unknown,
  } = config;
  return {
    name,
    retryType: strategy?.type ?? 'exponential',
    retryCount: text(strategy?.retry_count, '10'),
    retrySeconds: text(strategy?.duration, '10'),
    retryMaxSeconds: text(strategy?.max_seconds, '7200'),
    header: signature?.header ?? '',
    hash: signature?.hash ?? 'SHA256',
    encoding: signature?.encoding ?? 'hex',
    limitKind: ratelimit ? 'own' : 'none',
    limit: text(ratelimit?.count, '100'),
    limitSeconds: text(ratelimit?.duration, '1'),
    breakerKind: breaker ? 'own' : 'instance',
    threshold: text(breaker?.failure_threshold, '70'),
    minimum: text(breaker?.minimum_request_count, '10'),
    window: text(breaker?.observability_window, '5'),
    errorTimeout: text(breaker?.error_timeout, '30'),
    // Empty means the instance's retention.
    retentionDays: text(retention?.days, ''),
    // Empty means never.
    disableDays: text(disable ?? undefined, ''),
    unknownTypes: unknown ?? 'accept',
  };
}

/** The whole configuration of a project, for the API. */
export function configOf(draft: ProjectDraft): NonNullable<ChangedProject['config']> {
  const isExponential = draft.retryType === 'exponential';
  return {
    strategy: {
      type: draft.retryType,
      duration: number(draft.retrySeconds),
      retry_count: number(draft.retryCount),
      ...(isExponential ? { max_seconds: number(draft.retryMaxSeconds) } : {}),
    },
    signature: { header: draft.header.trim(), hash: draft.hash, encoding: draft.encoding },
    ratelimit:
      draft.limitKind === 'none'
        ? null
        : { count: number(draft.limit), duration: number(draft.limitSeconds) },
    circuit_breaker:
      draft.breakerKind === 'instance'
        ? null
        : {
            failure_threshold: number(draft.threshold),
            minimum_request_count: number(draft.minimum),
            observability_window: number(draft.window),
            error_timeout: number(draft.errorTimeout),
          },
    retention: draft.retentionDays.trim() === '' ? null : { days: number(draft.retentionDays) },
    disable_after_days: draft.disableDays.trim() === '' ? null : number(draft.disableDays),
    unknown_event_types: draft.unknownTypes,
  };
}
