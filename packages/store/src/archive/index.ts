export type { ArchivedDelivery, ArchivedEvent } from './event-file.js';
export type { ArchivedDay, ArchivePart } from './manifest.js';
export type { ArchivePlace, ObjectStore } from './object-store.js';
export { openObjectStore } from './open-store.js';
export { listArchive, readArchivedDay, type DayRange } from './read-archive.js';
export { writeDay, type DayToWrite } from './write-day.js';
