import type { ArchivePlace, OpenArchive } from '@gateway/store/retention/archive';
import { openObjectStore } from './open-store.js';
import { listArchive } from './read-archive.js';
import { replayArchived } from './replay.js';
import { writeDay } from './write-day.js';

/** Stays in the archive: the gateway needs no right to delete. */
const PROBE = 'doctor.txt';

export async function openArchive(settings: ArchivePlace): Promise<OpenArchive> {
  const store = await openObjectStore(settings);
  return {
    place: store.place,
    write: (day, options) => writeDay(store, day, options),
    list: (range) => listArchive(store, range),
    replay: (selection, options) => replayArchived(store, selection, options),
    probes: {
      [`writing ${PROBE}`]: () => store.put(PROBE, Buffer.from('gateway utils doctor\n')),
      [`reading ${PROBE}`]: () => store.get(PROBE),
      'listing folders': () => store.folders(''),
    },
    close: () => store.close(),
  };
}
