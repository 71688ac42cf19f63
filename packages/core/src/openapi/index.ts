export { type AnnouncedEventType, extractEventTypes } from './extract.js';
export type { StandaloneSchema } from './json-schema.js';
export type { ParsedDocument } from './references.js';
