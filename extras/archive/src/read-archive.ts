import { createHash } from 'node:crypto';
import type { ArchivedDay, ArchivedEvent, ArchiveRange } from '@gateway/store/retention/archive';
import { readEventFile } from './event-file.js';
import {
  archivedDays,
  archivedProjects,
  archivedShards,
  broken,
  keyOf,
  readManifest,
} from './manifest.js';
import type { ObjectStore } from './object-store.js';

/**
 * Manifests by shard, project and day.
 * @throws GatewayError `archive_unavailable` or `archive_broken`
 */
export async function* listArchive(
  store: ObjectStore,
  { projectId, from = '', to = '9' }: ArchiveRange,
): AsyncGenerator<ArchivedDay> {
  for (const shard of await archivedShards(store)) {
    const ids = projectId === undefined ? await archivedProjects(store, shard) : [projectId];
    for (const id of ids) {
      for (const day of await archivedDays(store, { shard, projectId: id })) {
        if (day < from || day > to) continue;
        const manifest = await readManifest(store, { shard, projectId: id, day });
        if (manifest) yield manifest;
      }
    }
  }
}

/**
 * Events with ids in the range, in pages. An event that was archived again, because it was
 * interrupted or sent again, is there more than once, the newest version last.
 * @throws GatewayError `archive_unavailable` or `archive_broken`
 */
export async function* readArchivedDay(
  store: ObjectStore,
  { shard, project_id: projectId, day, parts }: ArchivedDay,
  { firstId, lastId }: { readonly firstId: string; readonly lastId: string },
): AsyncGenerator<ArchivedEvent[]> {
  for (const part of parts) {
    if (part.first_id > lastId || part.last_id < firstId) continue;
    const key = keyOf({ shard, projectId, day }, part.file);
    const bytes = await store.get(key);
    if (!bytes) throw broken(store, key, 'it is missing');
    if (createHash('sha256').update(bytes).digest('hex') !== part.sha256)
      throw broken(store, key, 'its SHA-256 is not the one in the manifest');
    for await (const events of readEventFile(bytes)) {
      const wanted = events.filter(({ id }) => id >= firstId && id <= lastId);
      if (wanted.length > 0) yield wanted;
    }
  }
}
