export * from './log-page.js';
export * from './page.js';
