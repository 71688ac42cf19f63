import type { HealthReport } from '@gateway/client';
import { api, outage, type Resource, useResource } from '../../api/index.js';
import {
  Badge,
  type TableColumns,
  Link,
  Loaded,
  Panel,
  Table,
  Time,
  type Tone,
} from '../../components/index.js';
import { count } from '../../format/number.js';
import { href, projectHref } from '../../router/location.js';

const LIVE_MS = 3_000;

export function useHealth(): Resource<HealthReport> {
  return useResource('health', (options) => api().health.get(options), LIVE_MS);
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
      actions={<Link to="/deliveries?status=failure">Failed deliveries</Link>}
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

const columns: TableColumns<Failing> = {
  Endpoint: ({ uid, name }) => <Link to={`/endpoints/${uid}`}>{name}</Link>,
  State: ({ state, breaker_until: until }) => (
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
  'Failed requests': {
    isNumber: true,
    cell: ({ requests: { success, failure } }) =>
      `${count(failure)} of ${count(success + failure)}`,
  },
  Waiting: {
    isNumber: true,
    cell: ({ uid, name, waiting_deliveries: waiting }) => (
      <Link to={`/deliveries?endpoint=${uid}`} label={`Deliveries to ${name}: ${waiting} waiting`}>
        {count(waiting)}
      </Link>
    ),
  },
  'Latest reason': ({ reason }) => reason,
};
