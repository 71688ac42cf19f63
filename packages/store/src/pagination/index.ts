export * from './log-page.js';
export * from './page.js';
export * from './search-log.js';
