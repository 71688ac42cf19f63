import type { Source, SourceLag, SourceState } from '@gateway/client';
import { api, useResource } from '../../api/index.js';
import {
  ActionButton,
  Badge,
  type TableColumns,
  Copyable,
  DeleteButton,
  Facts,
  FullTime,
  labelOf,
  Link,
  Loaded,
  MASK,
  Panel,
  ResourcePage,
  Table,
  Time,
  toast,
} from '../../components/index.js';
import { count } from '../../format/number.js';
import { localTime } from '../../format/time.js';
import { query } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { may } from '../../session/session.js';
import { BrokerForm } from './broker-form.js';
import { HttpForm } from './http-form.js';
import { MoveButton } from './move-source.js';
import { SourceTabs, TONES, useSourceTypes, useStates } from './source-state.js';

export default function SourcePage({ id }: PageProps) {
  const source = useResource(`source ${id}`, (options) => api().sources.get(id, options));
  const states = useStates();
  const isSettings = query.value.get('tab') === 'settings';
  return (
    <ResourcePage
      resource={source}
      title={({ name }) => name}
      name="Source"
      list="Sources"
      actions={(data) => <SourceActions source={data} />}
    >
      {(data) => (
        <>
          <SourceTabs id={id} shown={isSettings ? 'settings' : 'status'} />
          {isSettings ? (
            <Settings key={data.updated_at} source={data} />
          ) : (
            <SourceStatus source={data} state={states.data?.get(id)} />
          )}
        </>
      )}
    </ResourcePage>
  );
}

function Settings({ source }: { source: Source }) {
  const type = source.pub_sub?.type;
  const types = useSourceTypes(type !== undefined);
  if (type === undefined) {
    return (
      <Panel title="Settings">
        <HttpForm source={source} />
      </Panel>
    );
  }
  return (
    <Panel title="Connection">
      <Loaded resource={types}>
        {(known) => {
          const own = known.find(({ name }) => name === type);
          return own ? (
            <BrokerForm type={own} source={source} />
          ) : (
            <p>
              The plugin <code>{type}</code> is not active on this server, so the connection cannot
              be shown or changed. An operator can see why under the plugins of the instance.
            </p>
          );
        }}
      </Loaded>
    </Panel>
  );
}

const LIVE_MS = 5_000;

function SourceStatus({ source, state }: { source: Source; state: SourceState | undefined }) {
  const status = (
    <Panel
      title="State"
      actions={state && <Badge status={state.state} tone={TONES[state.state]} />}
    >
      {state?.reason && (
        <p>
          <strong>{state.reason}</strong>
        </p>
      )}
      <SourceFacts source={source} />
    </Panel>
  );
  if (source.url !== null) return status;
  return (
    <div class="split">
      <div>
        <Lag source={source} />
      </div>
      <aside>{status}</aside>
    </div>
  );
}

function SourceFacts({ source }: { source: Source }) {
  const { uid, url, pub_sub: pubSub, paused_at: pausedAt, resumes_at: resumesAt, pauses } = source;
  const address = url === null ? null : new URL(url, location.origin).href;
  return (
    <Facts
      rows={{
        URL: address && <Copyable text={address} what="URL" />,
        Type: pubSub?.type ?? 'http',
        ...connectionFacts(pubSub),
        Workers: url === null && (pubSub?.workers ?? 1),
        Function: functionWords(source),
        'Messages kept': source.keep_messages && 'with their events',
        ...(pausedAt && {
          Paused: <FullTime at={pausedAt} />,
          'Paused by': source.paused_by,
          Resumes: resumesAt ? <FullTime at={resumesAt} /> : 'when resumed manually',
        }),
        'Consecutive pauses': pauses > 1 && pauses,
        Messages: (
          <>
            <Link to={`/events?source=${uid}`}>Events</Link> ·{' '}
            <Link to={`/quarantine?source=${uid}`}>Quarantined</Link>
          </>
        ),
        Created: <FullTime at={source.created_at} />,
        'Source ID': <Copyable text={uid} what="id" />,
      }}
    />
  );
}

function functionWords({ body_function: text, url }: Source): string {
  const lines = text ? text.trimEnd().split('\n').length : 0;
  if (lines > 0) return lines === 1 ? 'one line' : `${lines} lines`;
  return url !== null ? 'none' : 'none: messages are ingest messages';
}

/** Top-level text values, such as brokers, topic or queue. */
function connectionFacts(pubSub: Source['pub_sub']): Record<string, string> {
  const connection = pubSub && (pubSub as Record<string, unknown>)[pubSub.type];
  const facts = Object.entries(connection ?? {}).flatMap(([name, value]: [string, unknown]) => {
    const text = Array.isArray(value) ? value.join(', ') : value;
    return typeof text === 'string' && text !== '' && text !== MASK
      ? [[labelOf(name, {}), text] as const]
      : [];
  });
  return Object.fromEntries(facts);
}

type Partition = SourceLag['partitions'][number];

const columns: TableColumns<Partition> = {
  Partition: ({ partition }) => partition || 'the queue',
  'Messages behind': { isNumber: true, cell: ({ messages }) => count(messages) },
  'Next position': { isNumber: true, cell: ({ position }) => position ?? '–' },
  'End position': { isNumber: true, cell: ({ end }) => end ?? '–' },
};

/** Sorts names such as `orders/2` and `orders/10` by their numbers. */
function byPartition({ partition: one }: Partition, { partition: other }: Partition): number {
  return one.localeCompare(other, 'en', { numeric: true });
}

function Lag({ source }: { source: Source }) {
  const { uid: id } = source;
  const lag = useResource(
    `source lag ${id}`,
    (options) => api().sources.listLag(id, options),
    LIVE_MS,
  );
  const at = lag.data?.reported_at;
  return (
    <Panel
      title={
        lag.data?.messages === null || !lag.data
          ? 'Messages behind'
          : `${count(lag.data.messages)} messages behind`
      }
      actions={
        at && (
          <span class="muted">
            reported <Time at={at} look="relative" />
          </span>
        )
      }
    >
      <Loaded resource={lag} lines={3}>
        {({ reason, partitions, partition_count: total }) =>
          reason !== null ? (
            <p class="muted">{reason}</p>
          ) : (
            <>
              <Table
                label="Partitions"
                rows={[...partitions].sort(byPartition)}
                columns={columns}
                idOf={({ partition }) => partition}
              />
              {may('member') && partitions.some(({ position }) => position !== null) && (
                <p>
                  <MoveButton source={source} />
                </p>
              )}
              {total > partitions.length && (
                <p class="muted">
                  Showing the {count(partitions.length)} of {count(total)} partitions that are
                  furthest behind.
                </p>
              )}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

function SourceActions({ source }: { source: Source }) {
  const { uid, name, url, is_disabled: isDisabled, paused_at: pausedAt } = source;
  const turn = async () => {
    if (isDisabled) {
      await api().sources.update(uid, { is_disabled: false });
      toast('Source enabled.');
    } else if (pausedAt) {
      const { resumes_at: resumesAt } = await api().sources.resume(uid);
      toast(
        resumesAt
          ? `Agents paused this source. It resumes at ${localTime(resumesAt)}.`
          : 'Source resumed.',
      );
    } else {
      await api().sources.pause(uid);
      toast(
        `Source paused. ${url !== null ? 'Requests to its URL are asked to retry later.' : 'Messages wait in the broker.'}`,
      );
    }
  };
  const word = isDisabled ? 'Enable' : pausedAt ? 'Resume' : 'Pause';
  if (!may('member')) return null;
  return (
    <>
      <DeleteButton name={name} list="/sources" work={() => api().sources.delete(uid)}>
        <p>
          {url !== null
            ? 'The URL returns 404 from now on.'
            : 'Agents stop reading the source. Messages stay in the broker.'}{' '}
          Events and quarantined messages are kept.
        </p>
      </DeleteButton>
      <ActionButton keys="p" work={turn}>
        {word}
      </ActionButton>
    </>
  );
}
