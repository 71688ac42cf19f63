import type { HealthReport } from '@gateway/client';
import { api, outage } from '../../api/client.js';
import { useResource, type Resource } from '../../api/read.js';
import { Badge, Table, Time, type TableColumn, type Tone } from '../../components/data.js';
import { Loaded } from '../../components/feedback.js';
import { Panel } from '../../components/layout.js';
import { count } from '../../format/number.js';
import { href, projectHref } from '../../router/location.js';

const LIVE_MS = 3_000;

export function useHealth(): Resource<HealthReport> {
  return useResource('health', (signal) => api().health.get({ signal }), { everyMs: LIVE_MS });
}

const TONES: Readonly<Record<HealthReport['state'], Tone>> = {
  bad: 'bad',
  unknown: 'warn',
  warn: 'warn',
  idle: 'info',
  ok: 'ok',
};

/**
 * Also which pages to open next. If the report cannot be read, the state is unknown since the last
 * one.
 */
export function Findings({ health: { data, error } }: { health: Resource<HealthReport> }) {
  const since = data?.at ?? outage.value?.since;
  if (error)
    return (
      <section class="notice findings bad" aria-label="Health">
        <p class="findings-verdict" role="status">
          Unknown
          {since && (
            <>
              {' '}
              since <Time at={since} />
            </>
          )}
          : the health of the project cannot be read.
        </p>
      </section>
    );
  if (!data) return <section class="notice findings" aria-label="Health" />;
  return (
    <section class={`notice findings ${TONES[data.state]}`} aria-label="Health">
      <p class="findings-verdict" role="status">
        {data.sentence}
      </p>
      {data.findings.length > 0 && (
        <ul>
          {data.findings.map(({ code, sentence, page, action }) => (
            <li key={code}>
              {sentence}{' '}
              <a href={page === '/instance' ? href(page) : projectHref(page)}>{action}</a>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

type Failing = HealthReport['failing_endpoints'][number];

export function FailingEndpoints({ health }: { health: Resource<HealthReport> }) {
  return (
    <Panel
      title="Failing endpoints"
      actions={<a href={projectHref('/deliveries?status=failure')}>Failed deliveries</a>}
    >
      <Loaded resource={health} lines={3}>
        {({ failing_endpoints: rows }) =>
          rows.length === 0 ? (
            <p class="muted">No breaker is open, and no recent request failed.</p>
          ) : (
            <Table label="Failing endpoints" rows={rows} columns={columns} />
          )
        }
      </Loaded>
    </Panel>
  );
}

const STATES = {
  open: ['breaker open', 'bad'],
  failing: ['failing', 'bad'],
  partly: ['some failures', 'warn'],
} as const;

const columns: readonly TableColumn<Failing>[] = [
  {
    name: 'Endpoint',
    cell: ({ uid, name }) => <a href={projectHref(`/endpoints/${uid}`)}>{name}</a>,
  },
  {
    name: 'State',
    cell: ({ state, breaker_until: until }) => (
      <>
        <Badge status={state} label={STATES[state][0]} tone={STATES[state][1]} />
        {until && (
          <>
            {' '}
            next try <Time at={until} look="relative" />
          </>
        )}
      </>
    ),
  },
  {
    name: 'Failed requests',
    isNumber: true,
    cell: ({ requests: { success, failure } }) =>
      `${count(failure)} of ${count(success + failure)}`,
  },
  {
    name: 'Waiting',
    isNumber: true,
    cell: ({ uid, name, waiting_deliveries: waiting }) => (
      <a
        href={projectHref(`/deliveries?endpoint=${uid}`)}
        aria-label={`Deliveries to ${name}: ${waiting} waiting`}
      >
        {count(waiting)}
      </a>
    ),
  },
  { name: 'Latest reason', cell: ({ reason }) => reason },
];
