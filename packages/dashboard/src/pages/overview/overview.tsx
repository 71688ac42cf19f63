import type { SourceState, Summary } from '@gateway/client';
import { api, useResource } from '../../api/index.js';
import { TimeChart } from '../../components/chart.js';
import { ButtonLink, FilterSelect, Page, Problem } from '../../components/index.js';
import { compact, percent, rate } from '../../format/number.js';
import { milliseconds } from '../../format/time.js';
import { param } from '../../router/location.js';
import { OpenIssues } from '../issues/open-issues.js';
import { useStates } from '../sources/source-state.js';
import {
  backlogOf,
  latencyOf,
  lineOf,
  readActivity,
  successOf,
  summaryOf,
  type Recent,
  type Steps,
} from './activity.js';
import { FailingEndpoints, Findings, useHealth } from './findings.js';
import { EmptyTiles, Tiles } from './tiles.js';

const SUMMARY_MS = 3_000;
const ACTIVITY_MS = 10_000;
const MINUTE_MS = 60_000;
const RECENT_MINUTES = 15;
const RATE_MINUTES = 5;

/** The first needs no query parameter. */
const RANGES = [
  ['', 'Last hour', 60],
  ['6h', 'Last 6 hours', 360],
  ['24h', 'Last 24 hours', 1_440],
  ['7d', 'Last 7 days', 10_080],
] as const;

const NO_STEPS: Steps = { atMs: [], steps: [], latencies: [], backlogs: [], stepSeconds: 60 };

export default function Overview() {
  const asked = param('range');
  const minutes = (RANGES.find(([value]) => value === asked) ?? RANGES[0])[2];
  const now = useResource(
    'summary',
    async (options) => {
      const fromMs = Date.now() - RECENT_MINUTES * MINUTE_MS;
      const [summary, activity] = await Promise.all([
        api().summary.get(options),
        api().activity.get({ startDate: new Date(fromMs).toISOString() }, options),
      ]);
      return { summary, ...recentOf(activity) };
    },
    SUMMARY_MS,
  );
  const health = useHealth();
  const states = useStates();
  const activity = useResource(
    `activity ${minutes}`,
    (options) => readActivity(minutes, options),
    ACTIVITY_MS,
  );
  return (
    <Page
      title="Overview"
      actions={<FilterSelect name="range" label="Chart time range" options={RANGES} />}
    >
      {now.error && <Problem error={now.error} retry={now.refresh} />}
      {now.data && isNew(now.data.summary) ? <Start /> : <Findings health={health} />}
      {now.data ? <Tiles {...now.data} behind={behindOf(states.data)} /> : <EmptyTiles />}
      {activity.error && <Problem error={activity.error} retry={activity.refresh} />}
      <Charts steps={activity.data ?? NO_STEPS} />
      <OpenIssues />
      <FailingEndpoints health={health} />
    </Page>
  );
}

type ReadActivity = Awaited<ReturnType<ReturnType<typeof api>['activity']['get']>>;

function recentOf({ content }: ReadActivity): { recent: Recent; eventsPerSecond: number } {
  const sum = (steps: typeof content, value: (step: (typeof content)[number]) => number) =>
    steps.reduce((all, step) => all + value(step), 0);
  const newest = content.filter(
    ({ at }) => Date.now() - new Date(at).getTime() < RATE_MINUTES * MINUTE_MS,
  );
  return {
    recent: {
      success: sum(content, ({ attempts }) => attempts.success),
      failure: sum(content, ({ attempts }) => attempts.failure),
    },
    eventsPerSecond:
      sum(newest, ({ events }) => events.processed + events.failed) / (RATE_MINUTES * 60),
  };
}

/** A project without endpoints cannot deliver anything. */
function isNew({ endpoints: { active, paused, inactive } }: Summary): boolean {
  return active + paused + inactive === 0;
}

function Start() {
  return (
    <section class="notice info findings start" aria-label="Health">
      <p class="findings-verdict">This project has no endpoints yet, so nothing is delivered.</p>
      <ButtonLink kind="main" to="/start">
        Deliver a first message
      </ButtonLink>
    </section>
  );
}

function behindOf(states: ReadonlyMap<string, SourceState> | undefined): number | null {
  const known = [...(states?.values() ?? [])].flatMap(({ messages }) =>
    messages === null ? [] : [messages],
  );
  return known.length === 0 ? null : known.reduce((sum, it) => sum + it, 0);
}

function Charts({ steps }: { steps: Steps }) {
  const charts: readonly Omit<Parameters<typeof TimeChart>[0], 'atMs' | 'summary'>[] = [
    {
      title: 'Events per second',
      lines: [
        lineOf(steps, 'Processed', 'accent', (step) => step.events.processed),
        lineOf(steps, 'Failed', 'bad', (step) => step.events.failed),
      ],
      format: rate,
      empty: 'No events in this time range.',
    },
    {
      title: 'Success rate of requests',
      lines: [successOf(steps)],
      format: (share) => (share === 0 ? '0%' : percent(share)),
      max: 1,
      empty: 'No requests in this time range.',
    },
    {
      title: 'Latency from message to first response',
      lines: [
        latencyOf(steps, 'p50', 'accent'),
        latencyOf(steps, 'p95', 'warn'),
        latencyOf(steps, 'p99', 'bad'),
      ],
      format: milliseconds,
      empty: 'No successful deliveries in this time range.',
    },
    {
      title: 'Backlog',
      lines: [
        backlogOf(steps, 'Waiting deliveries', 'accent', 'waiting_deliveries'),
        backlogOf(steps, 'Pending events', 'warn', 'pending_events'),
      ],
      format: compact,
      empty: steps.backlogs.some((it) => it)
        ? 'Nothing waited in this time range.'
        : 'No agent counted the backlog in this time range.',
    },
  ];
  return (
    <div class="columns overview-charts">
      {charts.map((chart) => (
        <div key={chart.title} class="panel">
          <TimeChart {...chart} summary={summaryOf(chart.lines, chart.format)} atMs={steps.atMs} />
        </div>
      ))}
    </div>
  );
}
