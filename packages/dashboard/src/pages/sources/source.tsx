import type { Source, SourceLag, SourceState } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/read.js';
import {
  Badge,
  Copyable,
  Facts,
  FullTime,
  Table,
  Time,
  type TableColumn,
} from '../../components/data.js';
import { Loaded, toast } from '../../components/feedback.js';
import { ActionButton, ConfirmButton } from '../../components/form.js';
import { Page, Panel } from '../../components/layout.js';
import { labelOf, MASK } from '../../components/schema-form/schema.js';
import { count } from '../../format/number.js';
import { localTime } from '../../format/time.js';
import { navigate, projectHref, projectPath, query } from '../../router/location.js';
import type { PageProps } from '../../router/route.js';
import { may } from '../../session/session.js';
import { BrokerForm } from './broker-form.js';
import { HttpForm } from './http-form.js';
import { SourceTabs, TONES, useStates } from './source-state.js';

export default function SourcePage({ params: { id = '' } }: PageProps) {
  const source = useResource(`source ${id}`, (signal) => api().sources.get(id, { signal }));
  const states = useStates();
  const refresh = () => {
    source.refresh();
    states.refresh();
  };
  const isSettings = query.value.get('tab') === 'settings';
  return (
    <Page
      title={source.data?.name ?? 'Source'}
      above={<a href={projectHref('/sources')}>Sources</a>}
      actions={source.data && <SourceActions source={source.data} onChange={refresh} />}
    >
      <Loaded resource={source} lines={12}>
        {(data) => (
          <>
            <SourceTabs id={id} shown={isSettings ? 'settings' : 'status'} />
            {isSettings ? (
              <Settings key={data.updated_at} source={data} onSaved={refresh} />
            ) : (
              <SourceStatus source={data} state={states.data?.get(id)} />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Settings({ source, onSaved }: { source: Source; onSaved: () => void }) {
  const type = source.pub_sub?.type;
  const types = useResource(
    type && 'source types',
    async (signal) => (await api().sources.listTypes({ signal })).content,
  );
  if (type === undefined) {
    return (
      <Panel title="Settings">
        <HttpForm source={source} onSaved={onSaved} />
      </Panel>
    );
  }
  return (
    <Panel title="Connection">
      <Loaded resource={types}>
        {(known) => {
          const own = known.find(({ name }) => name === type);
          return own ? (
            <BrokerForm type={own} source={source} onSaved={onSaved} />
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

/** Shows the state of a source, its lag, and links to its events and quarantined messages. */
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
        <Lag id={source.uid} />
      </div>
      <aside>{status}</aside>
    </div>
  );
}

function SourceFacts({ source }: { source: Source }) {
  const {
    uid,
    url,
    pub_sub: pubSub,
    paused_at: pausedAt,
    paused_by: by,
    resumes_at: resumesAt,
    pauses,
  } = source;
  const address = url === null ? null : new URL(url, location.origin).href;
  return (
    <Facts
      rows={[
        ['URL', address && <Copyable text={address} what="URL" />],
        ['Type', pubSub?.type ?? 'http'],
        ...connectionFacts(pubSub),
        ['Workers', url === null ? (pubSub?.workers ?? 1) : null],
        ['Function', functionWords(source)],
        ['Messages kept', source.keep_messages ? 'with their events' : null],
        ['Paused', pausedAt && <FullTime at={pausedAt} />],
        ['Paused by', pausedAt && by],
        [
          'Resumes',
          pausedAt && (resumesAt ? <FullTime at={resumesAt} /> : 'when resumed manually'),
        ],
        ['Consecutive pauses', pauses > 1 ? pauses : null],
        [
          'Messages',
          <>
            <a href={projectHref(`/events?source=${uid}`)}>Events</a> ·{' '}
            <a href={projectHref(`/quarantine?source=${uid}`)}>Quarantined</a>
          </>,
        ],
        ['Created', <FullTime at={source.created_at} />],
        ['Source ID', <Copyable text={uid} what="id" />],
      ]}
    />
  );
}

function functionWords({ body_function: text, url }: Source): string {
  const lines = text ? text.trimEnd().split('\n').length : 0;
  if (lines > 0) return lines === 1 ? 'one line' : `${lines} lines`;
  return url !== null ? 'none' : 'none: messages are ingest messages';
}

/** Top-level text values, such as brokers, topic or queue. */
function connectionFacts(pubSub: Source['pub_sub']): (readonly [string, string])[] {
  const connection = pubSub && (pubSub as Record<string, unknown>)[pubSub.type];
  return Object.entries(connection ?? {}).flatMap(([name, value]: [string, unknown]) => {
    const text = Array.isArray(value) ? value.join(', ') : value;
    return typeof text === 'string' && text !== '' && text !== MASK
      ? [[labelOf(name, {}), text] as const]
      : [];
  });
}

type Partition = SourceLag['partitions'][number] & { readonly uid: string };

const columns: readonly TableColumn<Partition>[] = [
  { name: 'Partition', cell: ({ partition }) => partition || 'the queue' },
  { name: 'Messages behind', isNumber: true, cell: ({ messages }) => count(messages) },
  { name: 'Next position', isNumber: true, cell: ({ position }) => position ?? '–' },
  { name: 'End position', isNumber: true, cell: ({ end }) => end ?? '–' },
];

/** Sorts names such as `orders/2` and `orders/10` by their numbers. */
function byPartition({ uid: one }: Partition, { uid: other }: Partition): number {
  return one.localeCompare(other, 'en', { numeric: true });
}

function Lag({ id }: { id: string }) {
  const lag = useResource(`source lag ${id}`, (signal) => api().sources.listLag(id, { signal }), {
    everyMs: LIVE_MS,
  });
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
                rows={partitions.map((it) => ({ ...it, uid: it.partition })).sort(byPartition)}
                columns={columns}
              />
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

function SourceActions({ source, onChange }: { source: Source; onChange: () => void }) {
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
    onChange();
  };
  const word = isDisabled ? 'Enable' : pausedAt ? 'Resume' : 'Pause';
  if (!may('member')) return null;
  return (
    <>
      <ConfirmButton
        label="Delete…"
        title={`Delete ${name}?`}
        verb="Delete"
        work={async () => {
          await api().sources.delete(uid);
          toast(`${name} was deleted.`);
          navigate(projectPath('/sources'));
        }}
      >
        <p>
          {url !== null
            ? 'The URL returns 404 from now on.'
            : 'Agents stop reading the source. Messages stay in the broker.'}{' '}
          Events and quarantined messages are kept.
        </p>
      </ConfirmButton>
      <ActionButton keys="p" work={turn}>
        {word}
      </ActionButton>
    </>
  );
}
