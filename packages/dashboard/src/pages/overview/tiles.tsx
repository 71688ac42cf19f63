import type { Summary } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { Link } from '../../components/index.js';
import { compact, percent, rate } from '../../format/number.js';
import { milliseconds, span } from '../../format/time.js';
import type { Recent } from './activity.js';

/** The API's summary stops counting here. */
const MANY = 10_000;
const upTo = (value: number) => (value >= MANY ? `${compact(MANY)}+` : compact(value));

interface Tile {
  readonly name: string;
  readonly value: ComponentChildren;
  readonly remark: ComponentChildren;
  readonly tone?: 'bad' | 'warn' | undefined;
  readonly to?: string;
}

export function Tiles(now: Now) {
  return <TileList tiles={tilesOf(now)} />;
}

export function EmptyTiles() {
  const tiles = tilesOf(UNKNOWN).map(({ name, remark }) => ({ name, remark, value: '–' }));
  return <TileList tiles={tiles} />;
}

interface Now {
  readonly summary: Summary;
  readonly recent: Recent;
  readonly eventsPerSecond: number;
  /** At the brokers of all sources. Null if unknown. */
  readonly behind: number | null;
}

const UNKNOWN: Now = {
  summary: {
    pending_events: 0,
    oldest_pending_seconds: null,
    waiting_deliveries: 0,
    held_deliveries: 0,
    processing_deliveries: 0,
    quarantined_messages: 0,
    endpoints: { active: 0, paused: 0, inactive: 0 },
    sources: { running: 0, paused: 0, disabled: 0 },
    latency_ms: null,
  },
  recent: { success: 0, failure: 0 },
  eventsPerSecond: 0,
  behind: null,
};

function tilesOf({ summary, recent, eventsPerSecond, behind }: Now): readonly Tile[] {
  const { latency_ms: latency, endpoints, sources } = summary;
  const attempts = recent.success + recent.failure;
  const share = attempts === 0 ? undefined : recent.success / attempts;
  // The first row follows a message; the second shows where it may stop.
  return [
    {
      name: 'Sources',
      value: compact(sources.running),
      remark:
        behind !== null && behind > 0
          ? `enabled, ${compact(behind)} messages behind`
          : `enabled, ${sources.paused} paused, ${sources.disabled} disabled`,
      tone: sources.paused > 0 ? 'warn' : undefined,
      to: '/sources',
    },
    {
      name: 'Events',
      value: rate(eventsPerSecond),
      remark: 'average of the last 5 minutes',
      to: '/events',
    },
    {
      name: 'Requests accepted',
      value: share === undefined ? '–' : percent(share),
      remark:
        share === undefined
          ? 'no requests in the last 15 minutes'
          : `of ${compact(attempts)} in the last 15 minutes`,
      tone: share !== undefined && share < 0.95 ? 'bad' : undefined,
      to: '/deliveries',
    },
    {
      name: 'Latency',
      value: latency ? milliseconds(latency.p50) : '–',
      remark: latency
        ? `p95 ${milliseconds(latency.p95)}, p99 ${milliseconds(latency.p99)}`
        : 'from message to first response',
    },
    {
      name: 'Quarantine',
      value: upTo(summary.quarantined_messages),
      remark: summary.quarantined_messages === 0 ? 'no messages to review' : 'messages to review',
      tone: summary.quarantined_messages > 0 ? 'warn' : undefined,
      to: '/quarantine',
    },
    {
      name: 'Waiting events',
      value: upTo(summary.pending_events),
      remark:
        summary.oldest_pending_seconds === null
          ? 'no backlog'
          : `oldest ${span(summary.oldest_pending_seconds)}`,
      tone: (summary.oldest_pending_seconds ?? 0) > 30 ? 'bad' : undefined,
      to: '/events?status=pending',
    },
    {
      name: 'Waiting deliveries',
      value: upTo(summary.waiting_deliveries),
      remark: `${upTo(summary.processing_deliveries)} processing, ${upTo(summary.held_deliveries)} held`,
      tone: summary.held_deliveries > 0 ? 'warn' : undefined,
      to: '/deliveries?status=waiting',
    },
    {
      name: 'Endpoints',
      value: compact(endpoints.active),
      remark: `active, ${endpoints.paused} paused, ${endpoints.inactive} inactive`,
      tone: endpoints.inactive > 0 ? 'bad' : undefined,
      to: '/endpoints',
    },
  ];
}

function TileList({ tiles }: { tiles: readonly Tile[] }) {
  return (
    <ul class="tiles">
      {tiles.map(({ name, value, remark, tone, to }) => (
        <li key={name} class={tone ?? ''}>
          <span class="tile-name">{to ? <Link to={to}>{name}</Link> : name}</span>
          <span class="tile-value number">{value}</span>
          <span class="tile-remark">{remark}</span>
        </li>
      ))}
    </ul>
  );
}
