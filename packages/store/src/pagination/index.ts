export { progressAt } from './log-page.js';
export { type Page, type PageRequest } from './page.js';
