import type { Source, SourceLag, SourceState } from '@gateway/client';
import { api } from '../../api/client.js';
import { useResource } from '../../api/use-resource.js';
import { Badge } from '../../components/data/badge.js';
import { Copyable } from '../../components/data/copy.js';
import { Facts } from '../../components/data/facts.js';
import { Table } from '../../components/data/table.js';
import { FullTime, Time } from '../../components/data/time.js';
import { labelOf, MASK } from '../../components/schema-form/schema.js';
import { Loaded } from '../../components/feedback/loading.js';
import { Panel } from '../../components/layout/panel.js';
import { count } from '../../format/number.js';
import { projectHref, projectId } from '../../router/project-path.js';
import { TONES } from './use-states.js';

const LIVE_MS = 5_000;

/** A source's state, its lag, and the outcome of its messages. */
export function SourceStatus({
  source,
  state,
}: {
  readonly source: Source;
  readonly state: SourceState | undefined;
}) {
  const isHttp = source.type === 'http';
  return (
    <>
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
      {!isHttp && <Lag id={source.uid} />}
    </>
  );
}

function SourceFacts({ source }: { readonly source: Source }) {
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
        ['Post to', address && <Copyable text={address} what="URL" />],
        ['Type', pubSub?.type ?? 'http'],
        ...connectionFacts(pubSub),
        ['Workers', pubSub ? (pubSub.workers ?? 1) : null],
        ['Function', functionWords(source)],
        ['Kept', source.keep_messages ? 'messages, with their events' : null],
        ['Paused', pausedAt && <FullTime at={pausedAt} />],
        ['Paused by', pausedAt && by],
        [
          'Resumes',
          pausedAt && (resumesAt ? <FullTime at={resumesAt} /> : 'when someone resumes it'),
        ],
        ['Pauses in a row', pauses > 1 ? pauses : null],
        [
          'Messages',
          <>
            <a href={projectHref(`/events?source=${uid}`)}>Events</a> ·{' '}
            <a href={projectHref(`/quarantine?source=${uid}`)}>Quarantined</a>
          </>,
        ],
        ['Created', <FullTime at={source.created_at} />],
        ['Id', <Copyable text={uid} what="id" />],
      ]}
    />
  );
}

function functionWords({ body_function: text, type }: Source): string {
  const lines = text ? text.trimEnd().split('\n').length : 0;
  if (lines > 0) return lines === 1 ? 'one line' : `${lines} lines`;
  return type === 'http' ? 'none' : 'none: its messages are ingest messages';
}

/** The top-level text values of a connection: brokers, topic, queue. */
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

const columns = [
  { name: 'Partition', cell: ({ partition }: Partition) => partition || 'the queue' },
  { name: 'Messages behind', isNumber: true, cell: ({ messages }: Partition) => count(messages) },
  { name: 'Next to be read', isNumber: true, cell: ({ position }: Partition) => position ?? '–' },
  { name: 'End', isNumber: true, cell: ({ end }: Partition) => end ?? '–' },
];

function Lag({ id }: { readonly id: string }) {
  const lag = useResource(
    `${projectId.value} source lag ${id}`,
    (signal) => api().sources.listLag(id, { signal }),
    { everyMs: LIVE_MS },
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
              <Table<Partition>
                label="Partitions"
                rows={partitions.map((it) => ({ ...it, uid: it.partition }))}
                columns={columns}
              />
              {total > partitions.length && (
                <p class="muted">
                  The {count(partitions.length)} with the most of {count(total)} partitions are
                  shown.
                </p>
              )}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}
