/** Schemas, lists, answers and kinds of routes, for the files of `routes`. */
export { Type, type Static, type TObject, type TSchema, type TUnsafe } from '@sinclair/typebox';
export * from '../http/batch.js';
export * from '../http/list-query.js';
export { RawJson, stringify, type ApiAnswer } from '../http/response.js';
export * from '../http/schema.js';
export * from './route.js';
