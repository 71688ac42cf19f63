import { CONNECTION_REASONS, type ConnectionReason } from '@gateway/core/errors';

/*
 * Reasons are stored as sentences for operators. The codes for programs are derived from them here,
 * so that stored rows have codes too. A test checks the code of every sentence that is written.
 */

/** Beginnings of the sentences. */
export const DISCARD_REASONS = {
  project_deleted: 'The project was deleted.',
  endpoint_deleted: 'The endpoint was deleted.',
  endpoint_inactive: 'The endpoint is inactive',
  function: 'The function of the subscription ',
} as const;
export type DiscardReason = keyof typeof DISCARD_REASONS;

/** Beginnings of the sentences. */
export const INACTIVE_REASONS = {
  gone: 'It answered 410 Gone.',
  failing: 'All its delivery attempts failed for ',
} as const;
export type InactiveReason = keyof typeof INACTIVE_REASONS;

/** The beginning of errors of an endpoint's token server. */
export const NO_ACCESS_TOKEN = 'No access token from ';

export const ATTEMPT_ERRORS = [
  'no_access_token',
  'incomplete_response',
  'tls_required',
  ...(Object.keys(CONNECTION_REASONS) as ConnectionReason[]),
] as const;
export type AttemptError = (typeof ATTEMPT_ERRORS)[number];

/** Null for other reasons. */
export function discardReasonOf(reason: string | null): DiscardReason | null {
  return codeOf(DISCARD_REASONS, reason);
}

/** Null for other reasons. */
export function inactiveReasonOf(reason: string | null): InactiveReason | null {
  return codeOf(INACTIVE_REASONS, reason);
}

/** The details that `error_class` and `http_status` leave open, or null. */
export function attemptErrorOf({
  error_class,
  error,
}: {
  readonly error_class: string | null;
  readonly error: string | null;
}): AttemptError | null {
  if (error === null) return null;
  if (error_class === null) return 'incomplete_response';
  if (error.startsWith(NO_ACCESS_TOKEN)) return 'no_access_token';
  if (error.endsWith('speaks TLS, so its URL has to begin with https://.')) return 'tls_required';
  const ends = Object.entries(CONNECTION_REASONS) as [ConnectionReason, string][];
  return ends.find(([, reason]) => error.endsWith(`: ${reason}.`))?.[0] ?? null;
}

function codeOf<Code extends string>(
  beginnings: Readonly<Record<Code, string>>,
  sentence: string | null,
): Code | null {
  const rows = Object.entries(beginnings) as [Code, string][];
  return rows.find(([, beginning]) => sentence?.startsWith(beginning))?.[0] ?? null;
}
