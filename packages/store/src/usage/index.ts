export {
  closeUnposted,
  hasUnposted,
  lockBilling,
  listUsage,
  markPosted,
  type UsageDay,
} from './usage.js';
export { startUsageCounter, type UsageCounter } from './usage-counter.js';
