import type { EventExplanation, FunctionTestResult } from '@gateway/client';
import { Badge } from '../../components/data.js';
import { capital, clip, own } from '../../format/text.js';
import { projectHref } from '../../router/location.js';

type ShownRoute = NonNullable<FunctionTestResult['results'][number]['route']>;

/** Also why the event would not be routed to other endpoints. */
export function PreviewedRoute({ route, eventType }: { route: ShownRoute; eventType: string }) {
  const { endpoints, endpoint_count: count, sentence, subscriptions } = route;
  const missed = subscriptions.filter(({ matches }) => !matches);
  return (
    <div class="routing">
      {count === 0 ? (
        <p>{capital(sentence)}</p>
      ) : (
        <p>
          The event would go to{' '}
          {endpoints.map(({ uid, name }, index) => (
            <>
              {index > 0 && ', '}
              <a href={projectHref(`/endpoints/${uid}`)}>{name}</a>
            </>
          ))}
          {count > endpoints.length && ` and ${count - endpoints.length} more`}.
        </p>
      )}
      {missed.length > 0 && (
        <details>
          <summary>
            {missed.length === 1 ? 'One subscription does' : `${missed.length} subscriptions do`}{' '}
            not match
          </summary>
          <ul class="routing-rows">
            {missed.map(({ uid, name, mismatch }) => (
              <li key={uid}>
                <Badge status="none" label="no match" />
                <span>
                  {name}{' '}
                  {mismatch && <span class="muted">{mismatchSentence(mismatch, eventType)}</span>}
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

type Mismatch = NonNullable<EventExplanation['subscriptions'][number]['mismatch']>;

const OPERATORS: Readonly<Record<string, string>> = {
  $eq: 'to be',
  $neq: 'not to be',
  $gt: 'to be more than',
  $gte: 'to be at least',
  $lt: 'to be less than',
  $lte: 'to be at most',
  $in: 'to be one of',
  $nin: 'to be none of',
};

const SHOWN_CHARACTERS = 120;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return clip(text, SHOWN_CHARACTERS + 1);
}

export function mismatchSentence(
  { part, path, operator = '$eq', wanted, found, sentence }: Mismatch,
  eventType: string,
): string {
  if (sentence) return sentence;
  switch (part) {
    case 'deleted':
      return 'the subscription was deleted';
    case 'disabled':
      return 'the subscription is disabled';
    case 'endpoint':
      return 'the endpoint was deleted';
    case 'filter':
      return 'the filter is invalid';
    case 'event_types': {
      const types = Array.isArray(wanted) ? wanted.map(String).join(', ') : String(wanted);
      return `the event type ${eventType} does not match ${types}`;
    }
    case 'headers':
    case 'body': {
      const place = path ? `${part === 'headers' ? 'header ' : ''}${path}` : `the ${part}`;
      const asks = own(OPERATORS, operator) ?? `to match ${operator}`;
      return `the filter requires ${place} ${asks} ${shown(wanted)}, but it is ${found === undefined ? 'missing' : shown(found)}`;
    }
  }
}
