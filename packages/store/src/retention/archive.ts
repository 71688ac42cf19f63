// The contract of `@gateway/archive`, which copies expired events to a bucket or a folder.
import { importExtra } from '@gateway/core/process';
import type { EventRef } from '../events/index.js';
import type { Database } from '../postgres/index.js';

/** An event with what became of it. */
export interface ArchivedEvent {
  readonly id: string;
  readonly occurred_at: Date;
  readonly accepted_at: Date;
  readonly source_id: string | null;
  readonly coordinates: string;
  readonly event_type: string;
  readonly message_type: string;
  /** The endpoint or owner that the event names. */
  readonly endpoint_id: string | null;
  readonly owner_id: string | null;
  readonly idempotency_key: string | null;
  readonly status: string;
  readonly outcome: string | null;
  /** A JSON object of strings. */
  readonly headers: string;
  /** A JSON array of sentences. */
  readonly notes: string | null;
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
   * The shard of the events, undefined for the default one. A project that moves has events of a day
   * on two shards, and a manifest has one writer.
   */
  readonly shard?: string | undefined;
  readonly projectId: string;
  /** A UTC day, such as `2026-01-31`. */
  readonly day: string;
}

export interface DayToWrite extends ProjectDay {
  /** All events that were written before this time are among those of `pages`. */
  readonly writtenBefore: Date;
  /**
   * Yields the day's events by id, in pages small enough to encode in one go. With `since`, only
   * those that were written or delivered since.
   */
  pages(since: Date | null): AsyncIterable<readonly ArchivedEvent[]>;
}

/** A file with events in the order of their ids. */
export interface ArchivePart {
  readonly file: string;
  readonly events: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly first_id: string;
  readonly last_id: string;
}

/** The archived events of a project's day. */
export interface ArchivedDay {
  /** Undefined for the default shard. */
  readonly shard?: string | undefined;
  /** The version of this format and of the columns of the parts. */
  readonly version: number;
  readonly project_id: string;
  /** A UTC day, such as `2026-01-31`. */
  readonly day: string;
  readonly archived_at: string;
  /** All events that were written before this time are in the parts. */
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
  /** The range of event ids, which begin with the time of the message. */
  readonly firstId: string;
  readonly lastId: string;
  /** A pattern such as `order.*`. */
  readonly eventType?: string | undefined;
  readonly sourceId?: string | undefined;
  /** Select deliveries: each is sent again to its endpoint alone. */
  readonly endpointId?: string | undefined;
  readonly outcome?: ArchivedDelivery['status'] | undefined;
}

export interface ArchiveReplayOptions {
  readonly pool: Database['pool'];
  readonly dryRun: boolean;
  /** The maximum number of new events. */
  readonly limit: number;
  /** New events per second; 0 is unlimited. */
  readonly perSecond: number;
}

/** A commit of new events. In a dry run, `created` is empty. */
export interface ArchiveReplayStep {
  readonly selected: number;
  /** The new events, which are pending and must be signalled. */
  readonly created: readonly EventRef[];
}

export interface WriteOptions {
  readonly onPart?: ((part: ArchivePart) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Methods throw `archive_unavailable` or `archive_broken`. */
export interface OpenArchive {
  /** The URL or path, for messages. */
  readonly place: string;
  /**
   * Adds a project's day. It may be called again for the same day: events that the archive has are
   * left out. If it is interrupted, the next call writes the same parts again.
   */
  write(day: DayToWrite, options?: WriteOptions): Promise<void>;
  /** By shard, project and day. */
  list(range: ArchiveRange): AsyncGenerator<ArchivedDay>;
  /**
   * Sends archived events again, as new events of the current time that agents route. Without a
   * condition on deliveries, an event is routed by the current subscriptions, or to the endpoint or
   * owner that it named. Within a week, no event is sent twice.
   * @throws GatewayError `project_moved`, too
   */
  replay(
    selection: ArchiveSelection,
    options: ArchiveReplayOptions,
  ): AsyncGenerator<ArchiveReplayStep, void, void>;
  /** The requests that agents and commands make, by name. They leave `doctor.txt` in the archive. */
  readonly probes: Readonly<Record<string, () => Promise<unknown>>>;
  close(): void;
}

/** The settings `archive.*` that name a store. */
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
