export { openApiDocument, type OpenApiDocument, type Schema } from './document.js';
export { operationsOf, type Operation } from './operation.js';
