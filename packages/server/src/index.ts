export { startServer, type ServerOptions } from './server.js';
export { routes } from './routes/index.js';
export type { Route } from './api/route.js';
