export { type Page, type PageRequest } from './page.js';
