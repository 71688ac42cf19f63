import type { FunctionTestResult } from '@gateway/client';
import { Badge, Link } from '../../components/index.js';
import { capital } from '../../format/text.js';

type ShownRoute = NonNullable<FunctionTestResult['results'][number]['route']>;

export function PreviewedRoute({ route }: { route: ShownRoute }) {
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
              <Link to={`/endpoints/${uid}`}>{name}</Link>
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
                  {name} {mismatch && <span class="muted">{mismatch.sentence}</span>}
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
