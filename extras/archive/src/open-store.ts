import type { ArchivePlace } from '@gateway/store/retention/archive';
import type { ObjectStore } from './object-store.js';

/** Opens the store that `archive.url` names, without a request to it. */
export async function openObjectStore(place: ArchivePlace): Promise<ObjectStore> {
  // The S3 client takes half a second to load.
  if (!place.url.startsWith('s3://'))
    return new (await import('./folder-store.js')).FolderStore(place.url);
  return new (await import('./s3-store.js')).S3Store(place);
}
