export type { ParseFile } from './documents.js';
export { type AnnouncedEventType, extractEventTypes } from './extract.js';
export type { StandaloneSchema } from './json-schema.js';
