import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import type { ArchivedDay, ArchivePart, ProjectDay } from '@gateway/store/retention/archive';
import type { ObjectStore } from './object-store.js';

const VERSION = 1;

/**
 * Describes the archived events of a project's day. It is written after its parts: a part that it
 * does not name was never finished.
 */
type Manifest = Omit<ArchivedDay, 'shard'>;

// `name=value` is how DuckDB, Spark and Athena recognise partitions.
const SHARD = 'shard=';
const PROJECT = 'project=';
const DAY = 'day=';

export function keyOf({ day, ...of }: ProjectDay, file: string): string {
  return `${projectFolder(of)}${DAY}${day}/${file}`;
}

function projectFolder({ shard, projectId }: Omit<ProjectDay, 'day'>): string {
  return `${shardFolder(shard)}${PROJECT}${projectId}/`;
}

function shardFolder(shard: string | undefined): string {
  return shard === undefined ? '' : `${SHARD}${shard}/`;
}

/** Parts count from 1. */
export function partFile(number: number): string {
  return `events-${String(number).padStart(4, '0')}.parquet`;
}

/** The default shard is first. */
export async function archivedShards(store: ObjectStore): Promise<(string | undefined)[]> {
  return [undefined, ...namedIn(await store.folders(''), SHARD)];
}

export async function archivedProjects(
  store: ObjectStore,
  shard: string | undefined,
): Promise<string[]> {
  return namedIn(await store.folders(shardFolder(shard)), PROJECT).filter(isId);
}

/** Days as in `2026-01-31`. */
export async function archivedDays(
  store: ObjectStore,
  of: Omit<ProjectDay, 'day'>,
): Promise<string[]> {
  const folders = await store.folders(projectFolder(of));
  return namedIn(folders, DAY).filter((day) => /^\d{4}-\d\d-\d\d$/.test(day));
}

function namedIn(folders: readonly string[], prefix: string): string[] {
  return folders.flatMap((it) => (it.startsWith(prefix) ? [it.slice(prefix.length)] : []));
}

/**
 * Undefined if there is none.
 * @throws GatewayError `archive_unavailable` or `archive_broken`
 */
export async function readManifest(
  store: ObjectStore,
  of: ProjectDay,
): Promise<ArchivedDay | undefined> {
  const key = keyOf(of, '_manifest.json');
  // Versions before wrote no underscore, so that Spark and Hive took the manifest for a part.
  const bytes = (await store.get(key)) ?? (await store.get(keyOf(of, 'manifest.json')));
  if (!bytes) return undefined;
  const manifest = parsed(Buffer.from(bytes).toString());
  if (manifest?.version !== undefined && manifest.version > VERSION)
    throw broken(store, key, 'a newer version of the gateway wrote it');
  const isWhole =
    manifest?.version === VERSION &&
    manifest.project_id === of.projectId &&
    manifest.day === of.day &&
    // A name from the manifest becomes part of a path.
    manifest.parts?.every(({ file }) => /^events-\d{4,9}\.parquet$/.test(file));
  if (!isWhole) throw broken(store, key, 'it is not the manifest of this day');
  return { ...(manifest as Manifest), ...(of.shard !== undefined && { shard: of.shard }) };
}

function parsed(text: string): Partial<Manifest> | undefined {
  try {
    return JSON.parse(text) as Partial<Manifest>;
  } catch {
    return undefined;
  }
}

export async function writeManifest(
  store: ObjectStore,
  of: ProjectDay,
  {
    parts,
    writtenBefore,
  }: { readonly parts: readonly ArchivePart[]; readonly writtenBefore: Date },
): Promise<void> {
  const sum = (key: 'events' | 'bytes') => parts.reduce((all, part) => all + part[key], 0);
  const manifest: Manifest = {
    version: VERSION,
    project_id: of.projectId,
    day: of.day,
    archived_at: new Date().toISOString(),
    written_before: writtenBefore.toISOString(),
    events: sum('events'),
    bytes: sum('bytes'),
    parts,
  };
  await store.put(
    keyOf(of, '_manifest.json'),
    Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`),
  );
}

export function broken(store: ObjectStore, key: string, reason: string): GatewayError {
  return new GatewayError('archive_broken', { place: store.place, key, reason });
}
