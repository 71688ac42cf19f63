import type { EventExplanation } from '@gateway/client';
import { Badge } from '../../components/data/badge.js';
import { capital } from '../../format/sentence.js';
import { projectHref } from '../../router/project-path.js';
import { mismatchSentence } from '../preview/mismatch.js';

/** Explains to which endpoints an event was routed, and why not to others. */
export function Routing({ explanation }: { readonly explanation: EventExplanation }) {
  const {
    event,
    rule,
    rule_sentence: sentence,
    meant,
    subscriptions,
    subscription_count: count,
    now,
  } = explanation;
  return (
    <div class="routing">
      <p>{capital(sentence)}</p>
      {event.sentence && event.outcome !== 'routed' && <p>{capital(event.sentence)}</p>}
      {meant && (
        <p>
          Nearly the same name: <code>{meant}</code>
        </p>
      )}
      {now && event.status !== 'pending' && (
        <p class="muted">
          With the current configuration it would go to{' '}
          {now.endpoint_count === 1 ? 'one endpoint' : `${now.endpoint_count} endpoints`}
          {now.endpoint_count === 0 ? `. ${capital(now.sentence)}` : '.'}
        </p>
      )}
      {rule === 'subscriptions' && count === 0 && (
        <p>
          The project has no subscriptions: nothing decides where events go.{' '}
          <a href={projectHref('/subscriptions/new')}>Create one</a>
        </p>
      )}
      {rule === 'subscriptions' && subscriptions.length > 0 && (
        <>
          <h3>Subscriptions</h3>
          <ul class="routing-rows">
            {subscriptions.map((it) => (
              <li key={it.uid}>
                <Badge
                  status={it.matches ? 'success' : 'none'}
                  label={it.matches ? 'matches' : 'no match'}
                />
                <span>
                  <a href={projectHref(`/subscriptions/${it.uid}?event=${event.uid}`)}>{it.name}</a>
                  {it.mismatch && (
                    <span class="muted"> {mismatchSentence(it.mismatch, event.event_type)}</span>
                  )}
                  {it.changed_since && (
                    <span class="muted"> (changed since the event was accepted)</span>
                  )}
                </span>
              </li>
            ))}
          </ul>
          {count > subscriptions.length && (
            <p class="muted">
              {subscriptions.length} of {count} subscriptions are shown.
            </p>
          )}
        </>
      )}
    </div>
  );
}
