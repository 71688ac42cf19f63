// The contract of `@gateway/archive`, which copies expired events to a bucket or a folder.
import { importExtra } from '@gateway/core/process';
import type { EventRef, EventRow } from '../events/index.js';
import type { Database } from '../postgres/index.js';

type Unarchived = 'project_id' | 'data_bytes' | 'data' | 'message_type' | 'status';

export interface ArchivedEvent extends Omit<EventRow, Unarchived> {
  readonly message_type: string;
  readonly status: string;
  /** The data as JSON text, unchanged. */
  readonly data: string;
  /** A JSON array of `ArchivedDelivery`. */
  readonly deliveries: string;
}

export interface ArchivedDelivery {
  readonly id: string;
  readonly endpoint_id: string;
  readonly subscription_id: string | null;
  readonly status: 'success' | 'failure' | 'discarded';
  readonly attempts: number;
  readonly reason: string | null;
  readonly updated_at: string;
  /** The answer to the last attempt; null without one. */
  readonly http_status: number | null;
  readonly error: string | null;
}

export interface ProjectDay {
  /**
   * Undefined for the default one. A project that moves has events of a day on two shards, and a
   * manifest has one writer.
   */
  readonly shard?: string | undefined;
  readonly projectId: string;
  /** A UTC day, such as `2026-01-31`. */
  readonly day: string;
}

export interface DayToWrite extends ProjectDay {
  /** All events that were written before are among those of `pages`. */
  readonly writtenBefore: Date;
  /**
   * By id, in pages small enough to encode in one go. With `since`, only events that were written
   * or delivered since.
   */
  pages(since: Date | null): AsyncIterable<readonly ArchivedEvent[]>;
}

/** Has events in the order of their ids. */
export interface ArchivePart {
  readonly file: string;
  readonly events: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly first_id: string;
  readonly last_id: string;
}

export interface ArchivedDay {
  /** Undefined for the default shard. */
  readonly shard?: string | undefined;
  /** Covers the columns of the parts, too. */
  readonly version: number;
  readonly project_id: string;
  /** A UTC day, such as `2026-01-31`. */
  readonly day: string;
  readonly archived_at: string;
  /** All events that were written before are in the parts. */
  readonly written_before: string;
  readonly events: number;
  readonly bytes: number;
  readonly parts: readonly ArchivePart[];
}

export interface ArchiveRange {
  readonly projectId?: string | undefined;
  /** The first and the last UTC day, such as `2026-01-31`. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

export interface ArchiveSelection {
  readonly projectId: string;
  /** Event ids, which begin with the time of the message. */
  readonly firstId: string;
  readonly lastId: string;
  /** A pattern such as `order.*`. */
  readonly eventType?: string | undefined;
  readonly sourceId?: string | undefined;
  /** Selects deliveries: each is sent again to its endpoint alone. */
  readonly endpointId?: string | undefined;
  readonly outcome?: ArchivedDelivery['status'] | undefined;
}

export interface ArchiveReplayOptions {
  readonly pool: Database['pool'];
  readonly dryRun: boolean;
  readonly limit: number;
  /** New events; 0 is unlimited. */
  readonly perSecond: number;
}

/** In a dry run, `created` is empty. */
export interface ArchiveReplayStep {
  readonly selected: number;
  /** Pending events, which must be signalled. */
  readonly created: readonly EventRef[];
}

export interface WriteOptions {
  readonly onPart?: ((part: ArchivePart) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Methods throw `archive_unavailable` or `archive_broken`. */
export interface OpenArchive {
  /** For messages. */
  readonly place: string;
  /**
   * Adds a project's day. Called again, it leaves out events that the archive has, and writes the
   * same parts after an interruption.
   */
  write(day: DayToWrite, options?: WriteOptions): Promise<void>;
  /** By shard, project and day. */
  list(range: ArchiveRange): AsyncGenerator<ArchivedDay>;
  /**
   * Sends archived events again, as new events of the current time. Without a condition on
   * deliveries, an event is routed by the current subscriptions, or to the endpoint or owner that
   * it named. Within a week, no event is sent twice.
   * @throws GatewayError `project_moved`, too
   */
  replay(
    selection: ArchiveSelection,
    options: ArchiveReplayOptions,
  ): AsyncGenerator<ArchiveReplayStep, void, void>;
  /** Requests that agents and commands make. They leave `doctor.txt` in the archive. */
  readonly probes: Readonly<Record<string, () => Promise<unknown>>>;
  close(): void;
}

export interface ArchivePlace {
  readonly url: string;
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly path_style: boolean;
  readonly access_key_id?: string | undefined;
  readonly secret_access_key?: string | undefined;
  readonly sse?: 'AES256' | 'aws:kms' | 'aws:kms:dsse' | undefined;
  readonly sse_kms_key_id?: string | undefined;
}

export interface ArchivePackage {
  openArchive(place: ArchivePlace): Promise<OpenArchive>;
}

/**
 * Makes no request.
 * @throws GatewayError `package_missing`
 */
export async function openArchive(place: ArchivePlace): Promise<OpenArchive> {
  const archive = await importExtra<ArchivePackage>('@gateway/archive', 'archive.url');
  return archive.openArchive(place);
}
