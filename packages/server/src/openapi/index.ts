export { createsOnce } from '../api/idempotency.js';
export { operationsOf, type Operation } from '../api/operation.js';
export { RESOURCES } from '../api/resources.js';
export { accessOf } from '../api/route.js';
export { openApiDocument, type OpenApiDocument, type Schema } from './document.js';
