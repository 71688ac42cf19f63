import { GatewayApiError } from '@gateway/client';

const WAIT = 'There were too many requests at a time. Wait a few seconds, then try again.';
const AWAY = 'We cannot answer at present. Try again in a minute.';
const UNREACHABLE = 'We cannot be reached. Check your connection, then try again.';
const FAILED = 'Something went wrong. Reload the page. If it happens again, contact us.';
const DENIED = 'This link does not allow that.';

const SENTENCES: Readonly<Record<string, string>> = {
  not_found: 'Not found: it may have been deleted, or the link is wrong.',
  forbidden: DENIED,
  scope_missing: DENIED,
  project_full: 'You have as many as you may have. Delete one that you do not need, or contact us.',
  stale: 'Someone has changed it meanwhile. Load the page again.',
  body_too_large: 'The text is too large. Shorten it.',
};

const CONFLICTS: Readonly<Record<string, string>> = {
  endpoint_deleted: 'The endpoint was deleted.',
  endpoint_inactive: 'The endpoint is inactive. Activate it first.',
  endpoint_paused: 'The endpoint is paused. The message is sent when it is activated.',
  delivery_in_progress: 'This message is being sent now.',
};

export function errorSentence(error: Error): string {
  if (!(error instanceof GatewayApiError))
    return ['TypeError', 'TimeoutError'].includes(error.name) ? UNREACHABLE : FAILED;
  const { code, status, conflict, errors } = error;
  const known = SENTENCES[code];
  if (known) return known;
  if (code === 'invalid_request' && errors.length > 0)
    return errors.length === 1 ? 'Correct this field:' : `Correct these ${errors.length} fields:`;
  if (code === 'conflict') return CONFLICTS[conflict ?? ''] ?? SENTENCES['stale']!;
  if (status === 429) return WAIT;
  return status >= 500 ? AWAY : FAILED;
}
