export { beatAgent, enterAgent, leaveAgent } from './agents.js';
export { countAgents, type DatabaseFacts, examineDatabase, listSourcesOfProjects, type SourceOfProject } from './server-facts.js';
export { countUsage, type UsageCounter } from './usage-counter.js';
export { closeUnposted, hasUnposted, holdBilling, markPosted, type UsageDay } from './usage.js';
export { listUsage } from './usage.js';
