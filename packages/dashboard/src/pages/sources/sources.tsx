import type { Source, SourceState } from '@gateway/client';
import { api, useResource } from '../../api/index.js';
import {
  anyOf,
  Badge,
  ButtonLink,
  Empty,
  FilterSelect,
  isOldestFirst,
  Link,
  Loading,
  Log,
  type LogColumn,
  Muted,
  Page,
  Problem,
} from '../../components/index.js';
import { count } from '../../format/number.js';
import { param, projectHref } from '../../router/location.js';
import { may } from '../../session/session.js';
import { TONES, useStates } from './source-state.js';

const STATES = anyOf('Any state', [
  'failing',
  'unknown',
  'connecting',
  'paused',
  'disabled',
  'active',
]);

interface ListedSource {
  readonly uid: string;
  readonly source: Source;
  readonly state: SourceState | undefined;
}

export default function SourcesPage() {
  const sources = useResource('sources', async (options) => {
    const all: Source[] = [];
    for await (const source of api().sources.list({ perPage: 100 }, options)) all.push(source);
    return all;
  });
  const states = useStates();
  const isMember = may('member');
  const wanted = param('state');
  const error = sources.error ?? states.error;
  const rows = sources.data
    ?.map((source): ListedSource => ({
      uid: source.uid,
      source,
      state: states.data?.get(source.uid),
    }))
    .filter(({ state }) => wanted === '' || state?.state === wanted)
    .sort(inOrder);
  return (
    <Page
      title="Sources"
      isFull
      actions={
        isMember && (
          <ButtonLink kind="main" keys="n" to="/sources/new">
            New source
          </ButtonLink>
        )
      }
    >
      <div class="filter-bar">
        <FilterSelect name="state" label="State" options={STATES} />
      </div>
      {error && <Problem error={error} retry={sources.error ? sources.refresh : states.refresh} />}
      {!rows && !error && <Loading lines={6} />}
      {rows?.length === 0 &&
        (wanted ? (
          <Empty title="No sources in this state">
            <Link to="/sources">Show all sources</Link>
          </Empty>
        ) : (
          <Empty title="No sources yet">
            <p>
              A source reads a Kafka topic or a queue, or receives requests at a URL. Each message
              becomes an event.
            </p>
            {isMember && <ButtonLink to="/sources/new">Create source</ButtonLink>}
          </Empty>
        ))}
      {rows && rows.length > 0 && (
        <Log<ListedSource>
          label="Sources"
          columns={columns}
          rows={rows}
          hasMore={false}
          hrefOf={({ uid }) => projectHref(`/sources/${uid}`)}
          onEnd={() => undefined}
        />
      )}
    </Page>
  );
}

/** Compares sources by the column of the query, or by name. All are loaded, with their states. */
function inOrder(one: ListedSource, other: ListedSource): number {
  const by = param('by');
  const byName = one.source.name.localeCompare(other.source.name);
  if (by === '') return byName;
  const behind = ({ state }: ListedSource) => state?.messages ?? -1;
  const compared = by === 'behind' ? behind(one) - behind(other) || byName : byName;
  return isOldestFirst() ? compared : -compared;
}

const columns: readonly LogColumn<ListedSource>[] = [
  {
    name: 'Name',
    width: 'minmax(10rem, 1.6fr)',
    cell: ({ source }) => source.name,
    sort: { by: 'name', isUp: true },
  },
  {
    name: 'State',
    width: '7rem',
    cell: ({ state }) => state && <Badge status={state.state} tone={TONES[state.state]} />,
  },
  {
    name: 'Type',
    width: '6rem',
    narrow: 'second',
    cell: ({ source }) => source.pub_sub?.type ?? 'http',
  },
  {
    name: 'Messages behind',
    width: '9rem',
    isNumber: true,
    narrow: 'second',
    sort: { by: 'behind' },
    cell: ({ state }) => (state?.messages === null || !state ? '–' : count(state.messages)),
  },
  {
    name: 'Remark',
    width: 'minmax(8rem, 2.5fr)',
    narrow: 'hidden',
    cell: ({ state }) => <Muted text={state?.reason} />,
  },
];
