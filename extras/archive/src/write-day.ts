// Parquet, because every analytic engine reads it. The manifest of a day is written last, so parts
// that a killed process left never count. Row groups are encoded in this process with pauses: a
// worker thread would copy every value.
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ArchivePart, DayToWrite, WriteOptions } from '@gateway/store/retention/archive';
import { EventFileWriter } from './event-file.js';
import { keyOf, partFile, readManifest, writeManifest } from './manifest.js';
import type { ObjectStore } from './object-store.js';

/** A part is held in memory until it is written. */
const PART_BYTES = 16 * 1024 * 1024;
const PART_EVENTS = 50_000;

/** Adds a project's day to the archive, as `OpenArchive` says. */
export async function writeDay(
  store: ObjectStore,
  day: DayToWrite,
  { onPart, signal }: WriteOptions = {},
): Promise<void> {
  const manifest = await readManifest(store, day);
  const since = manifest ? new Date(manifest.written_before) : null;
  const parts = [...(manifest?.parts ?? [])];
  const before = parts.length;
  let file = new EventFileWriter();
  const put = async () => {
    const { events, firstId, lastId } = file;
    const bytes = file.finish();
    file = new EventFileWriter();
    const part: ArchivePart = {
      file: partFile(parts.length + 1),
      events,
      bytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
      first_id: firstId,
      last_id: lastId,
    };
    await store.put(keyOf(day, part.file), bytes);
    parts.push(part);
    onPart?.(part);
  };
  let startedAtMs = performance.now();
  for await (const page of day.pages(since)) {
    signal?.throwIfAborted();
    file.add(page);
    if (file.bytes >= PART_BYTES || file.events >= PART_EVENTS) await put();
    // Half of the time is left to the work of the agent and of Postgres.
    await sleep(performance.now() - startedAtMs);
    startedAtMs = performance.now();
  }
  if (file.events > 0) await put();
  if (parts.length === before) return;
  const writtenBefore = since && since > day.writtenBefore ? since : day.writtenBefore;
  await writeManifest(store, day, { parts, writtenBefore });
}
