import type { Config } from '@gateway/core/config';
import { sandboxLimits } from '../ingest/transformer.js';
import { idleSandbox } from './idle-sandbox.js';
import { openPreviewer, type Previewer } from './preview.js';

/** Processes end when no function has run for so long. */
const IDLE_MS = 60_000;

/** Runs functions for a server, with the limits and the sandbox of an agent. Starts no process until a function runs. */
export function openFunctions(config: Pick<Config, 'transform' | 'ingest'>): Previewer {
  return openPreviewer(config, idleSandbox(sandboxLimits(config), IDLE_MS));
}
