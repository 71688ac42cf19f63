import type { EventExplanation } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { Badge, Link, Time } from '../../components/index.js';
import { bytes, count } from '../../format/number.js';
import { capital } from '../../format/text.js';
import { milliseconds } from '../../format/time.js';
import { may } from '../../session/session.js';

interface Moment {
  readonly at: string;
  readonly name: string;
  readonly tone: 'ok' | 'warn' | 'bad' | 'info';
  readonly text: ComponentChildren;
}

/** Oldest first, each entry with the time elapsed since the message. */
export function Timeline({ explanation }: { explanation: EventExplanation }) {
  const startMs = new Date(explanation.event.occurred_at).getTime();
  return (
    <ol class="timeline">
      {momentsOf(explanation).map(({ at, name, tone, text }) => (
        <li key={`${name} ${at}`} class={tone}>
          <span class="timeline-time">
            <Time at={at} look="row" />
            <span class="muted number">
              +{milliseconds(Math.max(0, new Date(at).getTime() - startMs))}
            </span>
          </span>
          <span>
            <strong>{name}</strong> {text}
          </span>
        </li>
      ))}
    </ol>
  );
}

function momentsOf(explanation: EventExplanation): Moment[] {
  const { event, deliveries } = explanation;
  const { coordinates } = event;
  const hasMessage = coordinates !== 'api' && !coordinates.startsWith(ARCHIVE);
  const made: Moment[] = [
    { at: event.occurred_at, tone: 'ok', ...originOf(event) },
    ...(hasMessage ? [{ at: event.occurred_at, ...messageMoment(event) }] : []),
    {
      at: event.accepted_at,
      name: 'Accepted',
      tone: 'ok',
      text: 'committed, then acknowledged',
    },
    {
      at: event.accepted_at,
      name: event.status === 'pending' ? 'Waiting to be routed' : 'Routed',
      tone:
        event.status === 'processed'
          ? event.outcome === 'routed'
            ? 'ok'
            : 'warn'
          : event.status === 'failed'
            ? 'bad'
            : 'info',
      text: routedText(explanation),
    },
  ];
  const sent = deliveries.map((it): Moment => {
    const link = <Link to={`/deliveries/${it.uid}`}>{it.endpoint_name ?? it.endpoint_id}</Link>;
    const answer = it.http_status === null ? it.error : `HTTP ${it.http_status}`;
    const [name, words] =
      it.status === 'success'
        ? ['Delivered', 'to']
        : it.attempts === 0
          ? ['Waiting', 'for']
          : ['Attempted', 'delivery to'];
    return {
      at: it.attempted_at ?? it.updated_at,
      name,
      tone:
        it.status === 'success'
          ? 'ok'
          : it.status === 'failure'
            ? 'bad'
            : it.status === 'scheduled' || it.status === 'processing'
              ? 'info'
              : 'warn',
      text: (
        <>
          {words} {link} <Badge status={it.status} />{' '}
          {answer !== null && (
            <span class="muted">
              {answer}, attempt {it.attempts}
            </span>
          )}
          {it.next_attempt_at && (
            <span class="muted">
              {' '}
              · next attempt <Time at={it.next_attempt_at} look="relative" />
            </span>
          )}
        </>
      ),
    };
  });
  return [...made, ...sent.sort((one, other) => one.at.localeCompare(other.at))];
}

/** Precedes the former id in the coordinates of an event that was sent again from the archive. */
const ARCHIVE = 'archive/';

function originOf({
  coordinates,
  source_name: source,
}: EventExplanation['event']): Pick<Moment, 'name' | 'text'> {
  if (coordinates === 'api') return { name: 'Received', text: 'over the API' };
  if (coordinates.startsWith(ARCHIVE))
    return {
      name: 'Sent again',
      text: (
        <>
          from the archive: it was event{' '}
          <span class="mono">{coordinates.slice(ARCHIVE.length)}</span>
        </>
      ),
    };
  return {
    name: 'Read',
    text: (
      <>
        from {source ?? 'a deleted source'}, at <span class="mono">{coordinates}</span>
      </>
    ),
  };
}

function messageMoment({
  message_bytes: size,
  source_id: id,
  source_name: name,
}: EventExplanation['event']): Omit<Moment, 'at'> {
  if (size !== null)
    return {
      name: 'Message',
      tone: 'ok',
      text: <>stored, {bytes(size)}: shown with the payload</>,
    };
  const option = name !== null && may('member') && (
    <Link to={`/sources/${id}?tab=settings`}>Keep messages</Link>
  );
  return {
    name: 'Message',
    tone: 'info',
    text: (
      <>
        not stored.{' '}
        {option && <>{option} in the source settings to see the messages of later events.</>}
      </>
    ),
  };
}

function routedText({
  event,
  delivery_counts: counts,
  pending_before: before,
}: EventExplanation): string {
  if (event.status === 'pending')
    return before ? `behind ${count(before)} others` : 'next in the queue';
  if (event.outcome !== 'routed') return capital(event.sentence ?? event.outcome ?? '');
  const made = Object.values(counts).reduce((sum, it) => sum + it, 0);
  return made === 1 ? 'to one endpoint' : `with ${count(made)} deliveries`;
}
