export { routable } from './event-writer.js';
