import { parseDuration } from '../app/duration.js';
import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import { didYouMean } from '@gateway/core/errors';
import type { FlagValues } from '@gateway/core/config';
import type { RetriedStatus } from '@gateway/store/deliveries';

/** The statuses that `--status` takes, the usual one first. */
export const STATUSES: readonly RetriedStatus[] = ['failure', 'discarded', 'retry', 'scheduled', 'success'];

/** What the flags of `gateway retry` ask for. */
export interface RetryRequest {
  readonly status: RetriedStatus;
  /** As it was given. */
  readonly time: string;
  readonly from: Date;
  readonly projectId: string | undefined;
  readonly eventId: string | undefined;
  readonly endpointId: string | undefined;
}

/** @throws GatewayError `wrong_use` with what is allowed */
export function retryRequest(flags: FlagValues, now = Date.now()): RetryRequest {
  const { status, time } = flags;
  const missing = Object.entries({ '--status': status, '--time': time }).flatMap(([name, value]) => (value === undefined ? [name] : []));
  if (missing.length > 0) {
    throw new GatewayError('wrong_use', {
      sentence: `gateway retry needs ${missing.join(' and ')}`,
      fix: `give both, as in \`gateway retry --status failure --time 2h\`; statuses are ${STATUSES.join(', ')}`,
    });
  }
  const wanted = statusOf(String(status));
  if (wanted === 'success' && flags['force'] !== true) {
    throw new GatewayError('wrong_use', {
      sentence: 'event deliveries with status success were delivered: re-queued, their endpoints get them a second time',
      fix: 'add --force if that is meant; --dry-run with it counts them first',
    });
  }
  return {
    status: wanted,
    time: String(time),
    from: new Date(Math.max(0, now - parseDuration('--time', String(time)))),
    projectId: idOf('--project-id', flags['project-id']),
    eventId: idOf('--event-id', flags['event-id']),
    endpointId: idOf('--endpoint-id', flags['endpoint-id']),
  };
}

function statusOf(given: string): RetriedStatus {
  const known = STATUSES.find((it) => it === given);
  if (known) return known;
  if (given === 'processing') {
    throw new GatewayError('wrong_use', {
      sentence: 'event deliveries with status processing are held by an agent, which is sending them, and cannot be re-queued',
      fix: 'wait: what a dead agent held is moved on by another one within seconds',
    });
  }
  throw new GatewayError('wrong_use', {
    sentence: `--status must be one of ${STATUSES.join(', ')}, not ${JSON.stringify(given)}${didYouMean(given, STATUSES)}`,
    fix: 'correct it',
  });
}

function idOf(name: string, given: FlagValues[string]): string | undefined {
  if (given === undefined) return undefined;
  const id = String(given).trim().toLowerCase();
  if (isId(id)) return id;
  throw new GatewayError('wrong_use', {
    sentence: `${name} must be an id, not ${JSON.stringify(given)}`,
    fix: 'ids look like 019ab3c4-5d6e-8f70-9123-456789abcdef; the management API and the log of the agents show them',
  });
}
