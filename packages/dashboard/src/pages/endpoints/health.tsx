import { useResource } from '../../api/read.js';
import { TimeChart, type Line } from '../../components/chart.js';
import { Loaded } from '../../components/feedback.js';
import { Panel } from '../../components/layout.js';
import { FilterSelect } from '../../components/log/filter-bar.js';
import { count } from '../../format/number.js';
import { projectHref, projectId, query } from '../../router/location.js';
import { readActivity, type Steps } from '../overview/activity.js';
import { LastError } from './last-error.js';
import { acceptedWords, type Attempts } from './state.js';

const LIVE_MS = 10_000;

/** The first needs no query parameter. */
const RANGES = [
  ['', 'Last 24 hours', 24],
  ['6h', 'Last 6 hours', 6],
  ['7d', 'Last 7 days', 168],
] as const;

export function Health({ id }: { readonly id: string }) {
  const [range, words, hours] =
    RANGES.find(([value]) => value === query.value.get('range')) ?? RANGES[0];
  const activity = useResource(
    `${projectId.value} activity of ${id} ${range}`,
    // Include the unfinished step: the chart shows counts and not rates.
    (signal) => readActivity(hours * 60, signal, { endpointId: id, isWhole: false }),
    { everyMs: LIVE_MS },
  );
  const failed = projectHref(`/deliveries?endpoint=${id}&status=failure`);
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
        <a href={projectHref(`/deliveries?endpoint=${id}`)}>All deliveries</a>
        <a href={failed}>Resend failed deliveries…</a>
        <a href={projectHref(`/deliveries?endpoint=${id}&status=retry`)}>
          Deliveries waiting for a retry
        </a>
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
  return [
    { label: 'Accepted', colour: 'ok', values: steps.map((step) => step?.attempts.success ?? 0) },
    { label: 'Failed', colour: 'bad', values: steps.map((step) => step?.attempts.failure ?? 0) },
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
