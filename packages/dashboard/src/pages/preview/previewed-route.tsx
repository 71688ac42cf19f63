import type { FunctionTestResult } from '@gateway/client';
import { Badge } from '../../components/data/badge.js';
import { capital } from '../../format/sentence.js';
import { projectHref } from '../../router/project-path.js';
import { mismatchSentence } from './mismatch.js';

type Route = NonNullable<FunctionTestResult['results'][number]['route']>;

/** The endpoints an event would be routed to, and why not to others. */
export function PreviewedRoute({
  route,
  eventType,
}: {
  readonly route: Route;
  readonly eventType: string;
}) {
  const { endpoints, endpoint_count: count, sentence, subscriptions } = route;
  const missed = subscriptions.filter(({ matches }) => !matches);
  return (
    <div class="routing">
      {count === 0 ? (
        <p>{capital(sentence)}</p>
      ) : (
        <p>
          It would go to{' '}
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
