// One mechanism serves all routes that create something, instead of a column in each table. Only
// successes are stored: a refused request creates nothing, so the next one with its key runs. The
// claim is not in the transaction of the create. If a server dies in between, the outcome is
// unknown, and the key is not run again.
import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, isGatewayError, type InvalidField } from '@gateway/core/errors';
import type { SecretPlace } from '@gateway/core/crypto';
import { claimRequest, finishRequest, releaseRequest } from '@gateway/store/people';
import { derivedKey } from '../auth/process-credentials.js';
import { isBeforeCommit } from '../health/database-outage.js';
import { assertValid } from '../http/schema.js';
import { stringify, type ApiAnswer } from '../http/response.js';
import type { AppContext } from './context.js';
import { pathOf, type AnyCall, type Route } from './route.js';

export const REPLAYED_HEADER = 'Idempotent-Replayed';

const RETRY_AFTER_SECONDS = 1;

/** Open routes are excluded, and events, which store their own keys. */
export function createsOnce({ method, status, reach, body }: Route): boolean {
  return (
    method === 'post' &&
    status === 201 &&
    reach !== 'open' &&
    !('idempotency_key' in (body?.['properties'] ?? {}))
  );
}

export function idempotencyKeyOf(headers: IncomingHttpHeaders): {
  readonly key: string | undefined;
  readonly problems: InvalidField[];
} {
  const key = headers['idempotency-key'] as string | undefined;
  // Other characters have no agreed encoding in headers.
  const isValid = key === undefined || /^[\x20-\x7e]{1,512}$/.test(key);
  return {
    key,
    problems: isValid
      ? []
      : [{ field: 'Idempotency-Key', sentence: 'must be 1 to 512 characters of ASCII' }],
  };
}

/**
 * Runs a creating route at most once per credential and `Idempotency-Key`. For 24 hours, a repeated
 * request gets the first response, sealed because it can contain a secret. A failed request creates
 * nothing and is not stored. A request with an unknown outcome, such as one interrupted by a crash,
 * does not run again.
 *
 * @throws GatewayError `idempotency_key_reused`, `request_in_progress` or `outcome_unknown`
 */
export function runOnce(
  context: AppContext,
): (route: Route, call: AnyCall, run: () => Promise<ApiAnswer>) => Promise<ApiAnswer> {
  const { config, database, sealer, log } = context;
  const hashKey = derivedKey(config.encryption_key, 'requests with idempotency keys');
  return async (route, call, run) => {
    const { key, problems } = idempotencyKeyOf(call.headers);
    assertValid(problems);
    if (key === undefined) return run();
    const request = { callerId: call.caller.id, key };
    const place: SecretPlace = ['idempotent_requests', request.callerId, key];
    const asked = JSON.stringify([pathOf(route), call.params, call.query, call.body]);
    const hash = createHmac('sha256', hashKey).update(asked).digest();
    const claimed = await claimRequest(database.pool, request, {
      hash,
      max: config.limits.idempotency_keys_per_credential,
    });
    if (claimed.state === 'answered') {
      const answer = JSON.parse(sealer.open(claimed.answer, place)) as ApiAnswer;
      return { ...answer, headers: { ...answer.headers, [REPLAYED_HEADER]: 'true' } };
    }
    if (claimed.state === 'other_request') throw new GatewayError('idempotency_key_reused');
    if (claimed.state === 'in_progress')
      throw new GatewayError('request_in_progress', { retryAfterSeconds: RETRY_AFTER_SECONDS });
    if (claimed.state === 'interrupted') throw new GatewayError('outcome_unknown');
    const kept = (work: Promise<void>) =>
      work.catch((error: unknown) =>
        log.warn({ error }, 'Could not store the outcome of a request with an Idempotency-Key.'),
      );
    try {
      const answer = await run();
      await kept(finishRequest(database.pool, request, sealer.seal(stringify(answer), place)));
      return answer;
    } catch (error) {
      if (isGatewayError(error) || isBeforeCommit(error))
        await kept(releaseRequest(database.pool, request));
      throw error;
    }
  };
}
