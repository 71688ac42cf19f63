export { type RoutingRule } from './route.js';
