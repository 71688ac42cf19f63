import type { DeliveryAttempt, EventDelivery } from '@gateway/client';
import { api, useResource } from '../../api/index.js';
import { type Line, TimeChart } from '../../components/chart.js';
import { FilterSelect, Link, Loaded, Panel, Time } from '../../components/index.js';
import { count } from '../../format/number.js';
import { capital } from '../../format/text.js';
import { failureWords } from '../../portal/attempts.js';
import { deliveryWords } from '../../portal/states.js';
import { isPortal, projectHref, query } from '../../router/location.js';
import { readActivity, type Steps } from '../overview/activity.js';
import { acceptedWords, type Attempts } from './state.js';

const LIVE_MS = 10_000;

/** The first needs no query parameter. */
const RANGES = [
  ['', 'Last 24 hours', 24],
  ['6h', 'Last 6 hours', 6],
  ['7d', 'Last 7 days', 168],
] as const;

export function Health({ id }: { id: string }) {
  const [range, words, hours] =
    RANGES.find(([value]) => value === query.value.get('range')) ?? RANGES[0];
  const activity = useResource(
    `activity of ${id} ${range}`,
    // Include the unfinished step: the chart shows counts and not rates.
    (options) => readActivity(hours * 60, options, { endpointId: id, isWhole: false }),
    LIVE_MS,
  );
  const deliveries = (status = '') => projectHref(`/deliveries?endpoint=${id}${status}`);
  return (
    <Panel
      title="Health"
      actions={<FilterSelect name="range" label="Time range" options={RANGES} />}
    >
      <Loaded resource={activity} lines={6}>
        {(steps) => {
          const lines = linesOf(steps);
          return (
            <>
              <p>
                {acceptedWords(totals(steps))} in the {words.toLowerCase()}.
              </p>
              <TimeChart
                title={titleOf(steps)}
                summary={summaryOf(lines)}
                atMs={steps.atMs}
                lines={lines}
                format={count}
              />
            </>
          );
        }}
      </Loaded>
      <LastError endpointId={id} />
      <p class="panel-links">
        <a href={deliveries()}>All deliveries</a>
        <a href={deliveries('&status=failure')}>Resend failed deliveries…</a>
        <a href={deliveries('&status=retry')}>Deliveries waiting for a retry</a>
      </p>
    </Panel>
  );
}

function titleOf({ stepSeconds }: Steps): string {
  return `Requests per ${stepSeconds >= 3600 ? 'hour' : '10 minutes'}`;
}

function totals({ steps }: Steps): Attempts {
  const sum = (kind: 'success' | 'failure') =>
    steps.reduce((all, step) => all + (step?.attempts[kind] ?? 0), 0);
  return { success: sum('success'), failure: sum('failure') };
}

function linesOf({ steps }: Steps): readonly Line[] {
  const values = (kind: 'success' | 'failure') => steps.map((step) => step?.attempts[kind] ?? 0);
  return [
    { label: 'Accepted', colour: 'ok', values: values('success') },
    { label: 'Failed', colour: 'bad', values: values('failure') },
  ];
}

function summaryOf(lines: readonly Line[]): string {
  return lines
    .map(
      ({ label, values }) =>
        `${label}: ${count(values.reduce<number>((sum, it) => sum + (it ?? 0), 0))}`,
    )
    .join('. ');
}

const ERROR_MS = 5_000;

/** From the newest failed or retried delivery. */
function LastError({ endpointId }: { endpointId: string }) {
  const { data } = useResource(
    `last error of ${endpointId}`,
    async (options) => {
      const newest = api().eventDeliveries.list(
        { endpointId, status: ['retry', 'failure'], perPage: 1 },
        options,
      );
      const delivery = (await newest.page()).content[0];
      if (!delivery) return undefined;
      const { content } = await api().eventDeliveries.listDeliveryAttempts(delivery.uid, options);
      return { delivery, attempt: content[0] };
    },
    ERROR_MS,
  );
  if (!data) return null;
  const { delivery, attempt } = data;
  const why = isPortal.value
    ? ownerReason(delivery, attempt)
    : (attempt?.error ??
      delivery.reason ??
      (attempt ? `The endpoint answered ${attempt.http_status}` : 'The request was not sent'));
  return (
    <p>
      <strong>Last error:</strong> {capital(why)}{' '}
      <span class="muted">
        <Link to={`/deliveries/${delivery.uid}`}>
          {delivery.event_metadata.event_type ?? 'Delivery'}
        </Link>
        , <Time at={attempt?.requested_at ?? delivery.updated_at} look="relative" />
      </span>
    </p>
  );
}

function ownerReason(delivery: EventDelivery, attempt: DeliveryAttempt | undefined): string {
  if (!attempt) return deliveryWords(delivery).sentence;
  const { sentence, remedy } = failureWords(attempt);
  return `${sentence} ${remedy}`;
}
