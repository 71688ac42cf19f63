export { startServer, type ServerOptions } from './server.js';
export { routes } from './routes/index.js';
export type { Route } from './http/route.js';
