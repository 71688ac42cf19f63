export { startAgent, type AgentOptions } from './agent.js';
